// Reads the body of a backend's answer whole, within a bound.

import type { BackendAnswer, BodyReceiver } from "./transport.ts";

/**
 * All bytes, or undefined when there are more than the limit: the rest is not read, and the call is to be given up. Told of
 * each piece as it arrives. Rejects when the body breaks off.
 */
export function readWholeBody(
  answer: BackendAnswer,
  maxBytes: number,
  onPiece?: () => void,
): Promise<Uint8Array | undefined> {
  return new Promise((resolve, reject) => {
    answer.read(new WholeBody(answer, maxBytes, onPiece, resolve, reject));
  });
}

class WholeBody implements BodyReceiver {
  /** Set from the second piece on. */
  #pieces: Uint8Array[] | undefined;
  #first: Uint8Array | undefined;
  #bytes = 0;
  readonly #answer: BackendAnswer;
  readonly #maxBytes: number;
  readonly #onPiece: (() => void) | undefined;
  readonly #resolve: (body: Uint8Array | undefined) => void;
  readonly failed: (error: unknown) => void;

  constructor(
    answer: BackendAnswer,
    maxBytes: number,
    onPiece: (() => void) | undefined,
    resolve: (body: Uint8Array | undefined) => void,
    reject: (error: unknown) => void,
  ) {
    this.#answer = answer;
    this.#maxBytes = maxBytes;
    this.#onPiece = onPiece;
    this.#resolve = resolve;
    this.failed = reject;
  }

  received(piece: Uint8Array): void {
    this.#bytes += piece.length;
    if (this.#bytes > this.#maxBytes) {
      this.#answer.pause();
      this.#resolve(undefined);
      return;
    }
    this.#onPiece?.();
    if (this.#first === undefined) this.#first = piece;
    else {
      this.#pieces ??= [this.#first];
      this.#pieces.push(piece);
    }
  }

  ended(): void {
    this.#resolve(this.#pieces === undefined ? (this.#first ?? NO_BYTES) : Buffer.concat(this.#pieces, this.#bytes));
  }
}

const NO_BYTES = new Uint8Array(0);
