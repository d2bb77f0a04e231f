// The latest requests of one target of a route: how they ended, how long they took and what they cost.

/** Requests that are kept of a target. */
const MOST_SAMPLES = 1_000;

/** Means "not known", in place of a number. */
const UNKNOWN = Number.NaN;

interface ArmSample {
  /** Clock milliseconds. */
  atMs: number;
  failed: boolean;
  /** Until the first byte of the answer; undefined of failures, and of answers that waited for another target. */
  firstTokenMs: number | undefined;
  tokensPerSecond: number | undefined;
  /** Undefined where the price is not known. */
  cost: number | undefined;
}

const COLUMNS = ["failed", "firstTokenMs", "tokensPerSecond", "cost"] as const;
type SampleColumn = (typeof COLUMNS)[number];

/** The newest samples in a ring, which grows with them. */
export class ArmNumbers {
  #times = new Float64Array(16);
  #values = new Float64Array(16 * COLUMNS.length);
  #count = 0;
  /** Those before are not looked at. */
  sinceMs = Number.NEGATIVE_INFINITY;

  /** How many there were when it was judged last, beside each main target: a target may stand in several lists. */
  readonly judgedAt = new Map<string, number>();

  /** What clients say of its answers. */
  readonly feedback = { count: 0, sum: 0 };

  /** All there were, the forgotten ones too. */
  get count(): number {
    return this.#count;
  }

  add({ atMs, failed, firstTokenMs, tokensPerSecond, cost }: ArmSample): void {
    if (this.#count === this.#times.length && this.#count < MOST_SAMPLES) this.#grow();
    const place = this.#count++ % this.#times.length;
    this.#times[place] = atMs;
    const at = place * COLUMNS.length;
    this.#values[at] = failed ? 1 : 0;
    this.#values[at + 1] = firstTokenMs ?? UNKNOWN;
    this.#values[at + 2] = tokensPerSecond ?? UNKNOWN;
    this.#values[at + 3] = cost ?? UNKNOWN;
  }

  /** The known values of samples that are not older than a time. */
  values(column: SampleColumn, fromMs: number): number[] {
    const from = Math.max(fromMs, this.sinceMs);
    const offset = COLUMNS.indexOf(column);
    const found: number[] = [];
    const kept = Math.min(this.#count, this.#times.length);
    for (let place = 0; place < kept; place++) {
      const value = this.#values[place * COLUMNS.length + offset] as number;
      if ((this.#times[place] as number) >= from && !Number.isNaN(value)) found.push(value);
    }
    return found;
  }

  #grow(): void {
    const size = Math.min(this.#times.length * 4, MOST_SAMPLES);
    const times = new Float64Array(size);
    const values = new Float64Array(size * COLUMNS.length);
    times.set(this.#times);
    values.set(this.#values);
    this.#times = times;
    this.#values = values;
  }
}
