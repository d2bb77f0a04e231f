// Bytes that many holders may keep in memory together.

export class ByteAllowance {
  #limit: number;
  #left: number;

  constructor(limitBytes: number) {
    this.#limit = limitBytes;
    this.#left = limitBytes;
  }

  /** Nothing that is held is taken away: with less than that, no more can be taken. */
  resize(limitBytes: number): void {
    this.#left += limitBytes - this.#limit;
    this.#limit = limitBytes;
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
