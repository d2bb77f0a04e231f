// What several processes have counted of one cache on a server, as one.

import type { CacheStatistics, ModelCacheCounts } from "./cache.ts";
import { ModelCounters } from "./model-counters.ts";

const COUNTED = ["hits", "misses", "stores"] as const;

/** `own` says what the cache is; the others add what they have counted, and that they have lost the server. */
export function sumStatistics(own: CacheStatistics, others: readonly CacheStatistics[]): CacheStatistics {
  const sum = { ...own };
  const models = new ModelCounters(null);
  for (const each of [own, ...others]) {
    if (each !== own) for (const field of COUNTED) sum[field] += each[field];
    for (const row of each.models) add(models.of(row.model), row);
  }
  sum.connected = [own, ...others].every(({ connected }) => connected !== false);
  return { ...sum, models: models.list() };
}

function add(to: Pick<ModelCacheCounts, (typeof COUNTED)[number]>, more: ModelCacheCounts): void {
  for (const field of COUNTED) to[field] += more[field];
}
