// What counts or keeps something under a configuration: made anew only when its own section has changed.

import type { KeyIdentity } from "../access/key-identity.ts";
import type { Settings } from "../config/sections/registry.ts";
import { createStrategy } from "../routing/strategies/registry.ts";
import { createCacheOwner } from "./cache-in-use.ts";
import { createLimiterOwner } from "./limiter-in-use.ts";
import type { RedisInUseParts } from "./redis-in-use.ts";

export type Kept = ReturnType<ReturnType<typeof createKeeper>["keep"]>;

interface KeeperParts extends RedisInUseParts {
  settings: Settings;
  identify: KeyIdentity;
}

/** Makes these parts for settings, and keeps those of the call before where it can. */
export function createKeeper({ settings: atStart, identify, ...parts }: KeeperParts) {
  const limiter = createLimiterOwner(parts, identify, atStart.rate_limiting.storage === "redis");
  const cache = createCacheOwner(parts, atStart.response_cache.backend, limiter.waitedMs);
  const strategyOf = keptWhileSame(
    ({ routing, kv_cache_index: { enabled, fallback_strategy } }) => [routing, enabled, fallback_strategy],
    ({ routing, kv_cache_index }) => createStrategy(routing, kv_cache_index),
  );
  return {
    /** What must be there before the first request; undefined where nothing is missing. Then everything is kept anew. */
    load() {
      const loading = [limiter.load(), cache.load()].filter((each) => each !== undefined);
      return loading.length === 0 ? undefined : Promise.all(loading);
    },
    keep: (settings: Settings) => ({
      limiter: limiter.of(settings),
      /** Undefined while it is off. */
      cache: cache.of(settings.response_cache),
      strategy: strategyOf(settings),
    }),
    /** What other processes ask for: the buckets in memory, and the answers that no server keeps for all. */
    own: { limiter: limiter.own, answers: cache.own },
    cacheServerStats: cache.serverStats,
    /** The Redis servers in use. */
    redis: () => [cache.redis(), limiter.redis()].filter((redis) => redis !== undefined),
    stop() {
      cache.stop();
      limiter.stop();
    },
  };
}

/** Makes a thing again only when what it is made of is no longer the same. */
function keptWhileSame<Made>(
  partOf: (settings: Settings) => unknown,
  make: (settings: Settings) => Made,
): (settings: Settings) => Made {
  let kept: { part: unknown; made: Made } | undefined;
  return (settings) => {
    const part = partOf(settings);
    if (kept === undefined || !Bun.deepEquals(kept.part, part, true)) kept = { part, made: make(settings) };
    return kept.made;
  };
}
