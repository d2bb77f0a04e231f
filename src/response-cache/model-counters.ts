// Counters of the models that are asked for, as many as there is room for.

import type { ModelCacheCounts } from "./cache.ts";

/** Models with counters of their own: clients choose model names, so their number needs a bound. */
export const MAX_COUNTED_MODELS = 200;
export const OTHER_MODELS = "(other)";

/** Where entries are not counted, `kept` is null. */
export class ModelCounters<Kept extends 0 | null> {
  readonly #models = new Map<string, CountersOf<Kept>>();
  readonly #kept: Kept;

  constructor(kept: Kept) {
    this.#kept = kept;
  }

  of(model: string): CountersOf<Kept> {
    const own = this.#models.get(model);
    if (own !== undefined) return own;
    const name = this.#models.size < MAX_COUNTED_MODELS ? model : OTHER_MODELS;
    const none = { model: name, hits: 0, misses: 0, stores: 0, entries: this.#kept, bytes: this.#kept };
    const counters = this.#models.get(name) ?? (none as CountersOf<Kept>);
    this.#models.set(name, counters);
    return counters;
  }

  list(): ModelCacheCounts[] {
    return [...this.#models.values()].map((counters) => ({ ...counters }));
  }
}

type CountersOf<Kept> = ModelCacheCounts & (Kept extends 0 ? { entries: number; bytes: number } : unknown);
