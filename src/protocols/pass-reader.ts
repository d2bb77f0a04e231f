// Reads a stream that passes in the backend's own bytes: its format watches it, and of its errors the client sees what
// cannot be mended.

import type { ProtocolName } from "../generation/content.ts";
import type { Failure } from "../generation/result.ts";
import type { Usage } from "../generation/usage.ts";
import type { AnswerReader, Verdict } from "./answer-reader.ts";
import type { StreamWatch, WatchOptions } from "./protocol.ts";
import { errorToldIn, passThrough, streamJoin } from "./registry.ts";
import { lastEvent } from "./stream-ending.ts";
import type { SplitStream } from "./stream-join.ts";

export class PassReader implements AnswerReader {
  failure: Failure | undefined;
  heldError: Uint8Array | undefined;
  verdict: Verdict = "incomplete";
  readonly #protocol: ProtocolName | undefined;
  readonly #watch: StreamWatch;
  #splitAtError: ((events: Uint8Array) => SplitStream | undefined) | undefined;

  constructor(protocol: ProtocolName | undefined, options: WatchOptions) {
    this.#protocol = protocol;
    this.#watch = passThrough(protocol).watch(options);
  }

  push(received: Uint8Array): Uint8Array | undefined {
    const events = this.#splitAtError === undefined ? received : this.#beforeError(received);
    return events && this.#watch.push(events);
  }

  end(rest?: Uint8Array): Uint8Array | undefined {
    const received = rest && lastEvent(rest);
    const last = received && this.#beforeError(received);
    if (this.failure !== undefined) return undefined;
    const events = last && this.#watch.push(last);
    this.verdict = this.#watch.verdict();
    if (this.verdict === "incomplete") return undefined;
    // Some engines leave the marker out after an otherwise complete answer.
    const missing = this.verdict === "finished" ? this.#watch.endMarker : undefined;
    return events === undefined || missing === undefined ? (events ?? missing) : Buffer.concat([events, missing]);
  }

  get isOver(): boolean {
    return this.#watch.isDone;
  }

  holdErrors(): void {
    this.#splitAtError = streamJoin(this.#protocol)?.splitAtError;
  }

  fail(): undefined {}

  get reported(): Failure | undefined {
    const { reported } = this.#watch;
    return reported && errorToldIn(this.#protocol, reported);
  }

  get usage(): Usage | undefined {
    return this.#watch.usage;
  }

  get itemIds(): readonly string[] {
    return this.#watch.itemIds;
  }

  #beforeError(events: Uint8Array): Uint8Array | undefined {
    const split = this.#splitAtError?.(events);
    if (split === undefined) return events;
    const { before, error } = split;
    this.failure = errorToldIn(this.#protocol, { error });
    this.heldError = events.subarray(before?.length ?? 0);
    return before;
  }
}
