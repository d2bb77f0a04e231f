// What became of a call: everything that its caller could see, collected as a caller would.

import type { BackendAnswer, BackendCall, BodyReceiver } from "../../src/backends/transport.ts";

export type Outcome =
  /** `body` is what came before the end, whichever end that was. */
  | { end: "complete" | "broken"; status: number; header(name: string): string | null; body: Buffer; code?: string }
  | { end: "no answer"; code: string };

/** Collects a body, and holds its sender to the contract of BodyReceiver. */
export class Collector implements BodyReceiver {
  readonly pieces: Uint8Array[] = [];
  bytes = 0;
  /** What the sender did against the contract. */
  violation: string | undefined;
  end: "complete" | "broken" | undefined;
  code: string | undefined;
  readonly over: Promise<void>;
  readonly #over = Promise.withResolvers<void>();

  constructor() {
    this.over = this.#over.promise;
  }

  received(piece: Uint8Array): void {
    if (this.end !== undefined) this.violation = `bytes came after the body was ${this.end}`;
    this.pieces.push(piece);
    this.bytes += piece.length;
  }

  ended(): void {
    this.#settle("complete");
  }

  failed(error: unknown): void {
    this.code = codeOf(error);
    this.#settle("broken");
  }

  #settle(end: "complete" | "broken"): void {
    if (this.end !== undefined) this.violation = `the body was ${end} after it was ${this.end}`;
    this.end = end;
    this.#over.resolve();
  }

  get body(): Buffer {
    return Buffer.concat(this.pieces);
  }
}

/** The stable code of an error, which every failure must have. */
export function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  if (!(error instanceof Error) || typeof code !== "string" || code === "") {
    throw new Error("a failure without a code", { cause: error });
  }
  return code;
}

/** The answer, or the code of the error that stands for it. */
export async function headOf(call: BackendCall): Promise<BackendAnswer | { code: string }> {
  return await call.answer.then(
    (answer) => answer,
    (error: unknown) => ({ code: codeOf(error) }),
  );
}

export async function outcomeOf(call: BackendCall): Promise<Outcome> {
  const answer = await headOf(call);
  if ("code" in answer) return { end: "no answer", code: answer.code };
  return await bodyOf(answer);
}

export async function bodyOf(answer: BackendAnswer): Promise<Extract<Outcome, { status: number }>> {
  const collector = new Collector();
  answer.read(collector);
  await collector.over;
  if (collector.violation !== undefined) throw new Error(collector.violation);
  const { body, code } = collector;
  return {
    end: collector.end as "complete" | "broken",
    status: answer.status,
    header: (name) => answer.header(name),
    body,
    ...(code !== undefined && { code }),
  };
}

/** One line that is equal for equal outcomes; `headers` are those that are compared. */
export function summary(outcome: Outcome, headers: readonly string[] = []): string {
  if (outcome.end === "no answer") return "no answer";
  const told = headers.map((name) => `${name}=${JSON.stringify(outcome.header(name))}`).join(" ");
  return `${outcome.status} ${outcome.end} ${told} ${outcome.body.length} ${Bun.hash(outcome.body).toString(36)}`;
}
