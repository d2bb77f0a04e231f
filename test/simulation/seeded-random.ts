// Reproducible chance: every draw of a simulation comes from one seed.

export interface SeededRandom {
  /** In [0, 1). */
  next(): number;
  /** A whole number, both ends included. */
  between(low: number, high: number): number;
  chance(probability: number): boolean;
  pick<Item>(items: readonly Item[]): Item;
  /** Waits between events that come independently of each other. */
  exponential(mean: number): number;
  /** Another source, so that drawing more here does not change what is drawn there. */
  fork(): SeededRandom;
}

/** mulberry32 */
export function seededRandom(seed: number): SeededRandom {
  let state = seed | 0;
  function next(): number {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  return {
    next,
    between: (low, high) => low + Math.floor(next() * (high - low + 1)),
    chance: (probability) => next() < probability,
    pick: (items) => items[Math.floor(next() * items.length)] as (typeof items)[number],
    exponential: (mean) => -Math.log(1 - next()) * mean,
    fork: () => seededRandom(Math.floor(next() * 2 ** 32)),
  };
}
