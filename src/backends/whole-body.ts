// Reads the body of a backend's answer whole, within a bound.

import type { BackendAnswer, BodyReceiver } from "./transport.ts";

/** Gets the length of each piece as it arrives. */
interface PieceWatch {
  chunkReceived(): void;
}

/**
 * All bytes, at once where they are there already; undefined when there are more than the limit: the rest is not read, and
 * the call is to be given up. Rejects or throws when the body breaks off.
 */
export function readWholeBody(
  answer: BackendAnswer,
  maxBytes: number,
  watch?: PieceWatch,
): Uint8Array | undefined | Promise<Uint8Array | undefined> {
  const body = new WholeBody(answer, maxBytes, watch);
  answer.read(body);
  return body.isOver ? body.result() : body.later();
}

class WholeBody implements BodyReceiver {
  isOver = false;
  #first: Uint8Array | undefined;
  /** Set from the second piece on. */
  #pieces: Uint8Array[] | undefined;
  #bytes = 0;
  #failure: unknown;
  #settle: (() => void) | undefined;
  readonly #answer: BackendAnswer;
  readonly #maxBytes: number;
  readonly #watch: PieceWatch | undefined;

  constructor(answer: BackendAnswer, maxBytes: number, watch: PieceWatch | undefined) {
    this.#answer = answer;
    this.#maxBytes = maxBytes;
    this.#watch = watch;
  }

  received(piece: Uint8Array): void {
    this.#bytes += piece.length;
    if (this.#bytes > this.#maxBytes) {
      this.#answer.pause();
      this.ended();
      return;
    }
    this.#watch?.chunkReceived();
    if (this.#first === undefined) this.#first = piece;
    else {
      this.#pieces ??= [this.#first];
      this.#pieces.push(piece);
    }
  }

  ended(): void {
    this.isOver = true;
    this.#settle?.();
  }

  failed(error: unknown): void {
    this.#failure = error ?? new Error("the body broke off");
    this.ended();
  }

  /** Only valid once the body is over. */
  result(): Uint8Array | undefined {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#bytes > this.#maxBytes) return undefined;
    return this.#pieces === undefined ? (this.#first ?? NO_BYTES) : Buffer.concat(this.#pieces, this.#bytes);
  }

  async later(): Promise<Uint8Array | undefined> {
    await new Promise<void>((resolve) => {
      this.#settle = resolve;
    });
    return this.result();
  }
}

const NO_BYTES = new Uint8Array(0);
