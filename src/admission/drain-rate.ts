// How fast a queue empties, measured while something waits in it.

/** After this time an observation counts half. */
const HALF_LIFE_MS = 10_000;

export class DrainRate {
  /** Decayed sums. */
  #cost = 0;
  #count = 0;
  #timeMs = 0;
  /** The moment up to which time was counted; undefined while nothing waits. */
  #sinceMs: number | undefined;

  /** Something begins to wait. */
  begin(nowMs: number): void {
    this.#sinceMs ??= nowMs;
  }

  /** Nothing waits any more. */
  end(nowMs: number): void {
    this.#advance(nowMs);
    this.#sinceMs = undefined;
  }

  /** One of those that waited is served. */
  served(cost: number, nowMs: number): void {
    this.#advance(nowMs);
    this.#cost += cost;
    this.#count++;
  }

  /** Cost in a millisecond; undefined before anything was served. */
  costPerMs(nowMs: number): number | undefined {
    this.#advance(nowMs);
    return this.#count === 0 || this.#timeMs <= 0 ? undefined : this.#cost / this.#timeMs;
  }

  /** Requests in a second; undefined before any was served. */
  countPerSecond(nowMs: number): number | undefined {
    this.#advance(nowMs);
    return this.#count === 0 || this.#timeMs <= 0 ? undefined : (1000 * this.#count) / this.#timeMs;
  }

  #advance(nowMs: number): void {
    if (this.#sinceMs === undefined) return;
    const passedMs = nowMs - this.#sinceMs;
    const kept = 0.5 ** (passedMs / HALF_LIFE_MS);
    this.#cost *= kept;
    this.#count *= kept;
    this.#timeMs = this.#timeMs * kept + passedMs;
    this.#sinceMs = nowMs;
  }
}
