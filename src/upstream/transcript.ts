// The bytes of a stream as its client got them, as long as they are few enough to be kept.

import type { ByteAllowance } from "../lib/byte-allowance.ts";

export class Transcript {
  readonly #maxBytes: number;
  readonly #memory: ByteAllowance | undefined;
  pieces: Uint8Array[] = [];
  #bytes = 0;
  /** Whether the pieces are all that was sent. */
  isWhole = true;

  /** `memory`: what all that are kept together may take; undefined: each is bounded by itself alone. */
  constructor(maxBytes: number, memory: ByteAllowance | undefined) {
    this.#maxBytes = maxBytes;
    this.#memory = memory;
  }

  add(events: Uint8Array): void {
    if (!this.isWhole) return;
    const hasRoom = this.#bytes + events.length <= this.#maxBytes && this.#memory?.take(events.length) !== false;
    if (!hasRoom) {
      this.forget();
      return;
    }
    this.#bytes += events.length;
    this.pieces.push(events);
  }

  /** In one piece with memory of its own; undefined when it is not whole. */
  joined(): Uint8Array | undefined {
    return this.isWhole ? Bun.concatArrayBuffers(this.pieces, Number.POSITIVE_INFINITY, true) : undefined;
  }

  /** It will not be asked for any more. Safe to call at any time. */
  forget(): void {
    this.#memory?.giveBack(this.#bytes);
    this.#bytes = 0;
    this.pieces = [];
    this.isWhole = false;
  }
}
