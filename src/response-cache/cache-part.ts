// The response cache that the configuration asks for. What it holds stays while the same place keeps it.

import { remade } from "../config/compile/part.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { Settings } from "../config/sections/registry.ts";
import { ByteAllowance } from "../lib/byte-allowance.ts";
import { randomSeed } from "../lib/random-seed.ts";
import { createRedisServer, type RedisSurroundings } from "../redis/open-redis.ts";
import type { CacheInUse, ResponseCache } from "./cache.ts";
import { createMemoryCache } from "./memory.ts";
import type { TieredCache } from "./tiered.ts";

type CacheSettings = Settings["response_cache"];

interface CachePartParts extends RedisSurroundings {
  /** The answers in another process; undefined: they are in this one. */
  elsewhere?: ResponseCache | undefined;
  /** Under which other processes name the answers that this one has in memory. */
  cacheSeed?: number | undefined;
  /** How long a request may have waited for a server before the cache asks it. */
  waitedMs(url: string): number;
}

/** Where answers are kept holds from the start to the end: to switch takes a restart. */
export function createCachePart({ settings: atStart }: ConfigSnapshot, parts: CachePartParts) {
  const { clock, log, elsewhere, waitedMs } = parts;
  const { now } = clock;
  const { backend } = atStart.response_cache;
  const seed = parts.cacheSeed ?? randomSeed();
  let streams: ByteAllowance | undefined;

  const memory = remade<Pick<CacheSettings, "capacity" | "max_total_size">, ReturnType<typeof createMemoryCache>>({
    make({ capacity, max_total_size: maxBytes }, before) {
      before?.resize({ capacity, maxBytes });
      return before ?? createMemoryCache({ capacity, maxBytes, now, seed });
    },
  });
  /** The bucket's own settings alone make another store of it, but for how long its answers count. */
  const tiers = remade<CacheSettings["tiered"]["l2"], TieredCache>({
    make() {
      const { createTieredCache } = require("./tiered.ts") as typeof import("./tiered.ts");
      return createTieredCache({ settings: current, clock, log, seed });
    },
  });
  const server = createRedisServer<CacheSettings["redis"]>(parts, ({ url = "", pool_size, key_prefix }) => ({
    use: "response_cache",
    poolSize: pool_size,
    check: (client) => redisModule().checkCache(client, key_prefix),
    // Clears the answers kept here, because changes in Redis meanwhile are not known.
    returned: () => void (memory.now ?? elsewhere)?.clear(),
    waitedMs: () => waitedMs(url),
  }));
  const inRedis = remade<
    Exclude<ReturnType<typeof server.of>, undefined>,
    ReturnType<ReturnType<typeof redisModule>["createRedisCache"]>
  >({
    make({ redis, place: { key_prefix: prefix, fallback_to_memory } }) {
      const fallback = fallback_to_memory ? (memory.now ?? elsewhere) : undefined;
      return redisModule().createRedisCache({ redis, prefix, fallback, now });
    },
  });
  let current = atStart.response_cache;
  /** Undefined while the cache is off. */
  let store: ResponseCache | undefined;

  function storeOf(settings: CacheSettings): ResponseCache {
    if (backend === "tiered" && elsewhere === undefined) {
      const tiered = tiers.of({ ...settings.tiered.l2, ttl_override: undefined });
      tiered.apply(settings);
      return tiered;
    }
    const { capacity, max_total_size } = settings;
    const near = elsewhere ?? memory.of({ capacity, max_total_size });
    const opened = backend === "redis" ? server.of(settings.redis) : undefined;
    return opened === undefined ? near : inRedis.of(opened);
  }

  function follow({ settings: { response_cache: settings } }: Pick<ConfigSnapshot, "settings">): void {
    current = settings;
    if (!settings.enabled) {
      stop();
      return;
    }
    streams ??= new ByteAllowance(settings.max_total_size);
    streams.resize(settings.max_total_size);
    store = storeOf(settings);
  }

  function stop(): void {
    for (const each of [inRedis, server, tiers, memory]) each.stop();
    store = undefined;
    streams = undefined;
  }

  follow({ settings: atStart });
  return {
    follow,
    /** Undefined while it is off. */
    get inUse(): CacheInUse | undefined {
      return store && streams && { store, streams };
    },
    /**
     * The cache of this process, which other processes ask for; undefined where a server keeps the answers for all, and while
     * the cache is off.
     */
    own: (): ResponseCache | undefined => tiers.now ?? memory.now,
    /** Of a server that processes ask each for itself: what this one has asked. */
    serverStats: () => inRedis.now?.stats(),
    server,
    stop,
  };
}

function redisModule() {
  return require("./redis.ts") as typeof import("./redis.ts");
}
