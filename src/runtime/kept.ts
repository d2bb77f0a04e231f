// What counts or keeps something under a configuration: made anew only when its own section has changed.

import { acceptedSecrets } from "../access/api-keys.ts";
import type { KeyIdentity } from "../access/key-identity.ts";
import type { Settings } from "../config/sections/registry.ts";
import { ByteAllowance } from "../lib/byte-allowance.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import type { CacheParts } from "../pipeline/generate.ts";
import { createLimiter } from "../rate-limit/limiter.ts";
import type { ResponseCache } from "../response-cache/cache.ts";
import { createMemoryCache } from "../response-cache/memory.ts";
import { createStrategy } from "../routing/strategies/registry.ts";

export type Kept = ReturnType<ReturnType<typeof createKeeper>>;

/** The result makes these parts for settings, and keeps those of the call before where it can. */
export function createKeeper(identify: KeyIdentity, clock: Clock, log: Logger) {
  const limiterOf = keptWhileSame(
    ({ rate_limiting, api_keys }) => [rate_limiting, api_keys.keys],
    ({ rate_limiting, api_keys }) =>
      createLimiter({
        settings: rate_limiting,
        keyLimits: keyLimits(api_keys.keys, identify),
        now: clock.now,
        wallTime: clock.wallTime,
        seed: secretSeed(),
      }),
  );
  const cacheOf = keptWhileSame(
    ({ response_cache }) => response_cache,
    ({ response_cache }) => createCache(response_cache, clock, log),
  );
  const strategyOf = keptWhileSame(
    ({ routing, kv_cache_index: { enabled, fallback_strategy } }) => [routing, enabled, fallback_strategy],
    ({ routing, kv_cache_index }) => createStrategy(routing, kv_cache_index),
  );
  return (settings: Settings) => ({
    limiter: limiterOf(settings),
    /** Undefined while it is off. */
    cache: cacheOf(settings),
    strategy: strategyOf(settings),
  });
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

/** Requests per minute by key id. */
function keyLimits(keys: Settings["api_keys"]["keys"], identify: KeyIdentity): Map<string, number> {
  const limits = new Map<string, number>();
  for (const key of keys) {
    if (key.rate_limit === undefined) continue;
    for (const { caller } of acceptedSecrets(key, identify)) limits.set(caller.keyId, key.rate_limit);
  }
  return limits;
}

function createCache(settings: Settings["response_cache"], clock: Clock, log: Logger): CacheParts | undefined {
  if (!settings.enabled) return undefined;
  const { backend, capacity, max_total_size: maxBytes } = settings;
  const seed = secretSeed();
  const store =
    backend === "tiered"
      ? loadedCache(
          import("../response-cache/tiered.ts").then((tiered) =>
            tiered.createTieredCache({ settings, clock, log, seed }),
          ),
        )
      : createMemoryCache({ capacity, maxBytes, now: clock.now, seed });
  return { store, streams: new ByteAllowance(maxBytes) };
}

/** A cache whose program is loaded when it is switched on. */
function loadedCache(loading: Promise<ResponseCache>): ResponseCache {
  let loaded: ResponseCache | undefined;
  void loading.then((cache) => {
    loaded = cache;
  });
  const once = <Result>(use: (cache: ResponseCache) => Result) =>
    loaded === undefined ? loading.then(use) : use(loaded);
  return {
    get: (key, model) => once((cache) => cache.get(key, model)) as ReturnType<ResponseCache["get"]>,
    put: (key, answer, ttlMs) => once((cache) => cache.put(key, answer, ttlMs)) as ReturnType<ResponseCache["put"]>,
    clear: (model) => once((cache) => cache.clear(model)) as ReturnType<ResponseCache["clear"]>,
    stats: () => once((cache) => cache.stats()) as ReturnType<ResponseCache["stats"]>,
  };
}

function secretSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] as number;
}
