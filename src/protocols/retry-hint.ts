// How long a backend asks to be left alone, where only its words say so: "Please try again in 1.2s."

import type { Failure } from "../generation/result.ts";
import { compact } from "../lib/json.ts";

/** What a backend's words tell of, and how long it is to be left alone where it has too much to do. */
export function failureOf(
  told: { [Member in keyof Failure]: Failure[Member] | undefined } & Pick<Failure, "message" | "status">,
): Failure {
  return compact({ ...told, retryAfterMs: told.status === 429 ? retryHint(told.message) : undefined });
}

const HINT = /try again in ((?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|hours?|h|minutes?|m|seconds?|s)\s*){1,4})/i;
const PIECE = /(\d+(?:\.\d+)?)\s*(ms|milli|h|m|s)/gi;

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, milli: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Milliseconds; undefined when the message does not say. */
export function retryHint(message: string): number | undefined {
  const said = HINT.exec(message)?.[1];
  if (said === undefined) return undefined;
  let total = 0;
  for (const [, amount, unit = ""] of said.matchAll(PIECE))
    total += Number(amount) * (UNIT_MS[unit.toLowerCase()] ?? 0);
  return Math.ceil(total);
}
