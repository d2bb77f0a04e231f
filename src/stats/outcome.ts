// How a request ended: one word for lists, statistics and metrics alike.

export type Outcome =
  | "succeeded"
  /** The gateway or a backend found a fault in the request itself, or in the right to make it. */
  | "refused"
  /** The gateway or a backend could not do what was asked. */
  | "failed"
  /** The status 200 and a part of the answer had been sent. */
  | "stream_broken"
  | "client_left";

export const OUTCOMES = [
  "succeeded",
  "refused",
  "failed",
  "stream_broken",
  "client_left",
] as const satisfies readonly Outcome[];

/** True for an outcome that counts in a share of failures. */
export function isFailure(outcome: Outcome | undefined): boolean {
  return outcome === "failed" || outcome === "stream_broken";
}
