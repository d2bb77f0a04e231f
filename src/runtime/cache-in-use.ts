// The response cache that the configuration asks for. What it holds stays while the same place keeps it.

import type { Settings } from "../config/sections/registry.ts";
import { ByteAllowance } from "../lib/byte-allowance.ts";
import type { CacheParts } from "../pipeline/generate.ts";
import type { Redis } from "../redis/redis.ts";
import type { ResponseCache } from "../response-cache/cache.ts";
import { createMemoryCache, type MemoryCache } from "../response-cache/memory.ts";
import type { TieredCache } from "../response-cache/tiered.ts";
import { openRedis, type RedisInUseParts, redisSettings } from "./redis-in-use.ts";
import { secretSeed } from "./secret-seed.ts";

type CacheSettings = Settings["response_cache"];

type CreateRedisCache = typeof import("../response-cache/redis.ts").createRedisCache;

/** A cache in Redis, and what it was made of. */
interface InRedis {
  made: CacheSettings["redis"];
  redis: Redis;
  store: ReturnType<CreateRedisCache>;
}

/** A cache in memory and a bucket. */
interface InTiers {
  bucket: CacheSettings["tiered"]["l2"];
  loading: Promise<TieredCache>;
  parts: { store: ResponseCache; streams: ByteAllowance };
}

/**
 * Where answers are kept holds from the start to the end: to switch takes a restart.
 * @param waitedMs - how long a request may have waited for a server before the cache asks it
 */
export function createCacheOwner(
  parts: RedisInUseParts,
  backend: CacheSettings["backend"],
  waitedMs: (url: string) => number,
) {
  const { clock, log, elsewhere } = parts;
  const newSeed = () => parts.cacheSeed ?? secretSeed();
  const { now } = clock;
  let tiered: InTiers | undefined;
  let modules: Awaited<ReturnType<typeof loadModules>> | undefined;
  /** `memory`: undefined where another process has the answers. */
  let current: { memory: MemoryCache | undefined; streams: ByteAllowance } | undefined;
  let inRedis: InRedis | undefined;

  function stop(): void {
    inRedis?.redis.close();
    inRedis = undefined;
    current = undefined;
    tiered = undefined;
  }

  /** The bucket's own settings alone make another store of it, but for how long its answers count. */
  function inTiers(settings: CacheSettings): CacheParts {
    const bucket = { ...settings.tiered.l2, ttl_override: undefined };
    if (tiered !== undefined && Bun.deepEquals(bucket, tiered.bucket)) {
      void tiered.loading.then((cache) => cache.apply(settings));
      tiered.parts.streams.resize(settings.max_total_size);
      return tiered.parts;
    }
    const seed = newSeed();
    const loading = import("../response-cache/tiered.ts").then(({ createTieredCache }) =>
      createTieredCache({ settings, clock, log, seed }),
    );
    const parts = { store: loadedCache(loading), streams: new ByteAllowance(settings.max_total_size) };
    tiered = { bucket, loading, parts };
    return parts;
  }

  /** The server's own settings alone make another store of it. */
  function redisStore(made: CacheSettings["redis"], memory: ResponseCache): ResponseCache | undefined {
    if (modules === undefined) return undefined;
    // Without a URL the configuration wants something else after the next start.
    if (inRedis !== undefined && (made.url === undefined || Bun.deepEquals(made, inRedis.made))) return inRedis.store;
    const { url } = made;
    if (url === undefined) return undefined;
    inRedis?.redis.close();
    const { createRedis, createRedisCache, checkCache } = modules;
    const { key_prefix: prefix, pool_size, fallback_to_memory } = made;
    // What came and went in Redis meanwhile is not known here.
    const returned = () => void memory.clear();
    const check = (client: Parameters<typeof checkCache>[0]) => checkCache(client, prefix);
    const settings = redisSettings(made, pool_size);
    const redis = openRedis(createRedis, "response_cache", settings, parts, {
      check,
      returned,
      waitedMs: () => waitedMs(url),
    });
    const store = createRedisCache({ redis, prefix, fallback: fallback_to_memory ? memory : undefined, now });
    inRedis = { made, redis, store };
    return store;
  }

  return {
    /** Undefined where nothing is missing. */
    load: () =>
      backend !== "redis"
        ? undefined
        : loadModules().then((loaded) => {
            modules = loaded;
          }),
    of(settings: CacheSettings): CacheParts | undefined {
      if (!settings.enabled) {
        stop();
        return undefined;
      }
      if (backend === "tiered" && elsewhere === undefined) return inTiers(settings);
      const { capacity, max_total_size: maxBytes, redis } = settings;
      if (current === undefined) {
        const memory = elsewhere ? undefined : createMemoryCache({ capacity, maxBytes, now, seed: newSeed() });
        current = { memory, streams: new ByteAllowance(maxBytes) };
      } else {
        current.memory?.resize({ capacity, maxBytes });
        current.streams.resize(maxBytes);
      }
      const { streams } = current;
      const memory = current.memory ?? (elsewhere?.answers as ResponseCache);
      return { store: redisStore(redis, memory) ?? memory, streams };
    },
    /** What no server keeps for all: other processes ask for it. Undefined while the cache is off. */
    own: (): ResponseCache | undefined => tiered?.parts.store ?? current?.memory,
    /** Of a server that processes ask each for itself: what this one has asked. */
    serverStats: () => inRedis?.store.stats(),
    redis: () => inRedis && { use: "response_cache", isThere: inRedis.redis.isThere },
    stop,
  };
}

async function loadModules() {
  const [{ createRedis }, { checkCache, createRedisCache }] = await Promise.all([
    import("../redis/redis.ts"),
    import("../response-cache/redis.ts"),
  ]);
  return { createRedis, checkCache, createRedisCache };
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
