// Reads a stream that passes in the backend's own bytes: whether it was complete, what it counted, and what of it the
// client does not see.

import type { ProtocolName } from "../generation/content.ts";
import type { Failure } from "../generation/result.ts";
import type { Usage } from "../generation/usage.ts";
import type { AnswerReader, Verdict } from "./answer-reader.ts";
import type { PassedAnswer } from "./chat/passed-answer.ts";
import { type StreamWatch, watchEnding } from "./event-ending.ts";
import { errorToldIn, streamJoin } from "./registry.ts";
import { lastEvent } from "./stream-ending.ts";
import type { SplitStream } from "./stream-join.ts";
import { UsageWatch } from "./usage-watch.ts";

/** Some engines leave it out after an otherwise complete answer. */
const DONE_EVENT = new TextEncoder().encode("data: [DONE]\n\n");

export interface PassOptions {
  /** How many choices a complete answer has. */
  choices: number;
  /** The gateway asked for the counts of the stream, not the client. */
  hidesUsage?: boolean | undefined;
  /** What is changed in the events. */
  passed?: PassedAnswer | undefined;
}

export class PassReader implements AnswerReader {
  isOver = false;
  failure: Failure | undefined;
  verdict: Verdict = "incomplete";
  readonly #protocol: ProtocolName;
  readonly #ending: StreamWatch;
  readonly #counts: UsageWatch;
  #splitAtError: ((events: Uint8Array) => SplitStream | undefined) | undefined;
  #held: Uint8Array | undefined;

  constructor(protocol: ProtocolName, { choices, hidesUsage = false, passed }: PassOptions) {
    this.#protocol = protocol;
    this.#ending = watchEnding(protocol, choices);
    this.#counts = new UsageWatch(protocol, hidesUsage, passed);
  }

  push(received: Uint8Array): Uint8Array | undefined {
    const events = this.#splitAtError === undefined ? received : this.#beforeError(received);
    if (events === undefined) return undefined;
    if (this.#ending.saw(events)) this.isOver = true;
    return this.#counts.push(events);
  }

  end(rest?: Uint8Array): Uint8Array | undefined {
    const received = rest && lastEvent(rest);
    const last = received && this.#beforeError(received);
    if (this.failure !== undefined) return undefined;
    if (last !== undefined) this.#ending.saw(last);
    this.verdict = this.#ending.verdict();
    if (this.verdict === "incomplete") return undefined;
    const events = last && this.#counts.push(last);
    if (this.verdict !== "finished") return events;
    return events === undefined ? DONE_EVENT : Buffer.concat([events, DONE_EVENT]);
  }

  holdErrors(): void {
    this.#splitAtError = streamJoin(this.#protocol)?.splitAtError;
  }

  heldError(): Uint8Array | undefined {
    return this.#held;
  }

  fail(): undefined {}

  get usage(): Usage | undefined {
    return this.#counts.usage;
  }

  get itemIds(): readonly string[] {
    return this.#counts.itemIds;
  }

  #beforeError(events: Uint8Array): Uint8Array | undefined {
    const split = this.#splitAtError?.(events);
    if (split === undefined) return events;
    const { before, error } = split;
    this.failure = errorToldIn(this.#protocol, { error });
    this.#held = events.subarray(before?.length ?? 0);
    return before;
  }
}
