// How the latest requests at one backend went.

const KEPT = 100;

export class LatestOutcomes {
  readonly #failed = new Uint8Array(KEPT);
  #next = 0;
  #count = 0;
  #failures = 0;

  add(hasFailed: boolean): void {
    this.#failures -= this.#failed[this.#next] as number;
    this.#failed[this.#next] = hasFailed ? 1 : 0;
    if (hasFailed) this.#failures++;
    this.#next = (this.#next + 1) % KEPT;
    if (this.#count < KEPT) this.#count++;
  }

  /** The share that went well; 1 where there were none. */
  get health(): number {
    return this.#count === 0 ? 1 : 1 - this.#failures / this.#count;
  }
}
