// The gauges of the response cache.

import { INSTRUMENTS } from "../metrics/instruments.ts";
import type { MetricsRegistry } from "../metrics/registry.ts";
import type { CacheStatistics, ResponseCache } from "./cache.ts";

/** @param cache - undefined while it is off */
export function addCacheGauges(registry: MetricsRegistry, cache: () => Pick<ResponseCache, "stats"> | undefined): void {
  function cached(instrument: Parameters<MetricsRegistry["read"]>[0], field: "entries" | "bytes" | "evictions"): void {
    registry.read(instrument, () => {
      const statistics = cache()?.stats();
      // None for a cache that has to be waited for, or does not know.
      const value = statistics === undefined || statistics instanceof Promise ? null : statistics[field];
      return value === null ? [] : [{ labels: [], value }];
    });
  }
  function inBucket(instrument: Parameters<MetricsRegistry["read"]>[0], read: (told: CacheStatistics) => number): void {
    registry.read(instrument, () => {
      const statistics = cache()?.stats();
      if (statistics === undefined || statistics instanceof Promise || statistics.l2 === undefined) return [];
      return [{ labels: [], value: read(statistics) }];
    });
  }
  inBucket(INSTRUMENTS.cacheBucketUp, ({ connected }) => (connected ? 1 : 0));
  inBucket(INSTRUMENTS.cacheBucketHits, ({ l2 }) => l2?.hits ?? 0);
  inBucket(INSTRUMENTS.cacheBucketDropped, ({ l2 }) => l2?.dropped ?? 0);
  cached(INSTRUMENTS.cacheEntries, "entries");
  cached(INSTRUMENTS.cacheBytes, "bytes");
  cached(INSTRUMENTS.cacheEvictions, "evictions");
}
