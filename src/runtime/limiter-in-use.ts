// The limiter that the configuration asks for. Its buckets keep their level, whatever the limits become.

import { acceptedSecrets } from "../access/api-keys.ts";
import type { KeyIdentity } from "../access/key-identity.ts";
import type { Settings } from "../config/sections/registry.ts";
import { createLimiter, type Limiter, type MemoryLimiter } from "../rate-limit/limiter.ts";
import type { Redis } from "../redis/redis.ts";
import { openRedis, type RedisInUseParts, redisSettings } from "./redis-in-use.ts";
import { secretSeed } from "./secret-seed.ts";

type LimitSettings = Settings["rate_limiting"];

/** A decision is a small command: more connections would only spread what one can carry. */
const CONNECTIONS = 2;

/** `usesRedis` holds from the start to the end: to switch takes a restart. */
export function createLimiterOwner(parts: RedisInUseParts, identify: KeyIdentity, usesRedis: boolean) {
  const { now, wallTime } = parts.clock;
  const seed = secretSeed();
  let modules: Awaited<ReturnType<typeof loadModules>> | undefined;
  /** `buckets`: undefined where another process has them. */
  let current: { part: unknown; buckets: MemoryLimiter | undefined; limiter: Limiter } | undefined;
  let open: { made: LimitSettings["redis"]; redis: Redis } | undefined;

  /** The server's own settings alone make another connection. */
  function serverOf(made: LimitSettings["redis"], { createRedis, checkBuckets }: NonNullable<typeof modules>) {
    // Without a URL the configuration wants something else after the next start.
    if (made.url === undefined || (open !== undefined && Bun.deepEquals(made, open.made))) return open;
    open?.redis.close();
    const check = (client: Parameters<typeof checkBuckets>[0]) => checkBuckets(client, made.key_prefix);
    const redis = openRedis(createRedis, "rate_limiting", redisSettings(made, CONNECTIONS), parts, { check });
    open = { made, redis };
    return open;
  }

  return {
    /** Undefined where nothing is missing. */
    load: () =>
      !usesRedis
        ? undefined
        : loadModules().then((loaded) => {
            modules = loaded;
            current = undefined;
          }),
    of(all: Settings): Limiter {
      const { rate_limiting: settings, api_keys } = all;
      const part = [settings, api_keys.keys];
      if (current !== undefined && Bun.deepEquals(current.part, part, true)) return current.limiter;
      const keyLimits = keyLimitsOf(api_keys.keys, identify);
      const elsewhere = parts.elsewhere?.limiter(all);
      const previous = current?.buckets;
      const buckets = elsewhere ? undefined : createLimiter({ settings, keyLimits, now, wallTime, seed, previous });
      const own = elsewhere ?? (buckets as MemoryLimiter);
      const server = modules && own.limitsRequests ? serverOf(settings.redis, modules) : undefined;
      const shared = server && { ...server, prefix: server.made.key_prefix, settings, keyLimits, own, now, wallTime };
      current = { part, buckets, limiter: (shared && modules?.createSharedLimiter(shared)) ?? own };
      return current.limiter;
    },
    /** Those in memory, which other processes ask for; there are some once there were settings. */
    own: () => current?.buckets as MemoryLimiter,
    redis: () => open && { use: "rate_limiting", isThere: open.redis.isThere },
    /** How long a request may have waited for this server, which is away. */
    waitedMs: (url: string) =>
      open !== undefined && !open.redis.isThere && open.made.url === url ? open.made.command_timeout_ms : 0,
    stop: () => open?.redis.close(),
  };
}

/** Requests per minute by key id. */
function keyLimitsOf(keys: Settings["api_keys"]["keys"], identify: KeyIdentity): Map<string, number> {
  const limits = new Map<string, number>();
  for (const key of keys) {
    if (key.rate_limit === undefined) continue;
    for (const { caller } of acceptedSecrets(key, identify)) limits.set(caller.keyId, key.rate_limit);
  }
  return limits;
}

async function loadModules() {
  const [{ createRedis }, { checkBuckets, createSharedLimiter }] = await Promise.all([
    import("../redis/redis.ts"),
    import("../rate-limit/shared-limiter.ts"),
  ]);
  return { createRedis, checkBuckets, createSharedLimiter };
}
