// The limiter that the configuration asks for. Its buckets keep their level, whatever the limits become.

import { remade } from "../config/compile/part.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import type { Settings } from "../config/sections/registry.ts";
import { randomSeed } from "../lib/random-seed.ts";
import { createRedisServer, type RedisSurroundings } from "../redis/open-redis.ts";
import { createLimiter, type Limiter, type MemoryLimiter } from "./limiter.ts";

type LimitSettings = Settings["rate_limiting"];

/** A decision is a small command: more connections would only spread what one can carry. */
const CONNECTIONS = 2;

interface LimiterParts extends RedisSurroundings {
  /** The limits of another process, which has the buckets; undefined: they are in this one. */
  elsewhere?: ((settings: Settings) => Limiter) | undefined;
}

/** The choice of a storage holds from the start to the end: a switch to Redis, or back, takes a restart. */
export function createLimiterPart({ settings: atStart }: ConfigSnapshot, parts: LimiterParts) {
  const { clock, elsewhere } = parts;
  const { now, wallTime } = clock;
  const seed = randomSeed();
  const modules =
    atStart.rate_limiting.storage === "redis"
      ? (require("./shared-limiter.ts") as typeof import("./shared-limiter.ts"))
      : undefined;
  const server = createRedisServer<LimitSettings["redis"]>(parts, ({ key_prefix }) => ({
    use: "rate_limiting",
    poolSize: CONNECTIONS,
    check: (client) => (modules as NonNullable<typeof modules>).checkBuckets(client, key_prefix),
  }));
  /** `buckets`: undefined where another process has them. */
  const limits = remade<{ settings: LimitSettings }, { buckets: MemoryLimiter | undefined; limiter: Limiter }>({
    make({ settings }, before) {
      const remote = elsewhere?.(current);
      const previous = before?.buckets;
      const buckets = remote ? undefined : createLimiter({ settings, now, wallTime, seed, previous });
      const own = remote ?? (buckets as MemoryLimiter);
      const opened = modules && !remote ? server.of(settings.redis) : undefined;
      const shared = opened && { ...opened, prefix: opened.place.key_prefix, settings, own, now, wallTime };
      return { buckets, limiter: (shared && modules?.createSharedLimiter(shared)) ?? own };
    },
  });
  let current = atStart;

  function follow({ settings }: Pick<ConfigSnapshot, "settings">): void {
    current = settings;
    limits.of({ settings: settings.rate_limiting });
  }
  follow({ settings: atStart });
  return {
    follow,
    get limiter(): Limiter {
      return (limits.now as NonNullable<typeof limits.now>).limiter;
    },
    /** Those in memory, which other processes ask for. */
    own: () => limits.now?.buckets as MemoryLimiter,
    server,
    stop: server.stop,
  };
}
