// What has come from a socket and waits for a reader that pauses.

interface Pausable {
  pause(): void;
  resume(): void;
}

/** Beyond it, the other side is held back. */
const MAX_WAITING_BYTES = 64 * 1024;

export class Inbox {
  readonly #pieces: Uint8Array[] = [];
  #bytes = 0;
  #isSocketPaused = false;

  get isEmpty(): boolean {
    return this.#pieces.length === 0;
  }

  /** Adds what a socket has brought, which is paused where that is too much. */
  add(piece: Uint8Array, socket: Pausable): void {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    if (this.#bytes <= MAX_WAITING_BYTES || this.#isSocketPaused) return;
    this.#isSocketPaused = true;
    socket.pause();
  }

  /** Puts back what was not read of the piece that came first. */
  putBack(rest: Uint8Array): void {
    this.#pieces.unshift(rest);
    this.#bytes += rest.length;
  }

  /** What came first. */
  take(): Uint8Array | undefined {
    const piece = this.#pieces.shift();
    if (piece !== undefined) this.#bytes -= piece.length;
    return piece;
  }

  resume(socket: Pausable): void {
    if (!this.#isSocketPaused) return;
    this.#isSocketPaused = false;
    socket.resume();
  }

  clear(): void {
    this.#pieces.length = 0;
    this.#bytes = 0;
  }
}
