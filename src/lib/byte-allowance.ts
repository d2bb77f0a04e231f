// Bytes that many holders may keep in memory together.

export class ByteAllowance {
  #left: number;

  constructor(limitBytes: number) {
    this.#left = limitBytes;
  }

  /** False when there is no room for so many more. */
  take(bytes: number): boolean {
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#left += bytes;
  }
}
