// Reads the stream of a backend that takes over an answer: its events are made to fit behind those that were sent.

import type { Failure } from "../generation/result.ts";
import type { AnswerReader, Verdict } from "./answer-reader.ts";

/** Undefined when nothing is left of the events. Throws DecodeError when they do not fit. */
export type Splice = (events: Uint8Array) => Uint8Array | undefined;

export class SplicedReader implements AnswerReader {
  readonly #reader: AnswerReader;
  readonly #splice: Splice;
  /** Once events do not fit none are let through any more, but for those that tell of an error. */
  #isBroken = false;

  constructor(reader: AnswerReader, splice: Splice) {
    this.#reader = reader;
    this.#splice = splice;
  }

  push(events: Uint8Array): Uint8Array | undefined {
    return this.#fit(this.#reader.push(events));
  }

  end(rest?: Uint8Array): Uint8Array | undefined {
    return this.#isBroken ? undefined : this.#fit(this.#reader.end(rest));
  }

  get isOver(): boolean {
    return this.#reader.isOver;
  }

  get failure(): Failure | undefined {
    return this.#reader.failure;
  }

  get verdict(): Verdict {
    return this.#isBroken ? "incomplete" : this.#reader.verdict;
  }

  get usage(): AnswerReader["usage"] {
    return this.#reader.usage;
  }

  holdErrors(): void {
    this.#reader.holdErrors();
  }

  heldError(): Uint8Array | undefined {
    return this.#isBroken ? undefined : this.#lastWords(this.#reader.heldError());
  }

  fail(failure: Failure): Uint8Array | undefined {
    return this.#lastWords(this.#reader.fail(failure));
  }

  #fit(events: Uint8Array | undefined): Uint8Array | undefined {
    if (events === undefined) return undefined;
    try {
      return this.#splice(events);
    } catch (error) {
      this.#isBroken = true;
      throw error;
    }
  }

  /** Undefined, as if the reader had none, where they do not fit. */
  #lastWords(events: Uint8Array | undefined): Uint8Array | undefined {
    try {
      return events && this.#splice(events);
    } catch {
      return undefined;
    }
  }
}
