// The Redis server that a section of the configuration names: loaded when a gateway has one, made anew when its settings
// change, and never asked twice for the same.

import type { Settings } from "../config/sections/registry.ts";
import type { Clock } from "../lib/clock.ts";
import type { Deadlines } from "../lib/deadlines.ts";
import type { Logger } from "../logging/logger.ts";
import type { Limiter } from "../rate-limit/limiter.ts";
import type { Redis, RedisParts, RedisSettings } from "../redis/redis.ts";
import type { ResponseCache } from "../response-cache/cache.ts";

export interface RedisInUseParts {
  clock: Clock;
  deadlines: Deadlines;
  log: Pick<Logger, "info" | "warn">;
  /** Of which use a command went without a good answer. */
  redisUnanswered(use: string): void;
  /** Undefined: all of it is in this process. */
  elsewhere?: Elsewhere | undefined;
  /** Under which other processes name the answers that this one has in memory. */
  cacheSeed?: number | undefined;
}

/** What one process has and others ask it for: the answers in memory, and the buckets of the limits. */
export interface Elsewhere {
  limiter(settings: Settings): Limiter;
  answers: ResponseCache;
}

type Place = Settings["response_cache"]["redis"];

type RedisUse = "response_cache" | "rate_limiting";

type RedisMaker = typeof import("../redis/redis.ts").createRedis;

export function redisSettings(place: Omit<Place, "pool_size" | "fallback_to_memory">, poolSize: number): RedisSettings {
  const { url = "", connect_timeout_ms, command_timeout_ms, tls } = place;
  return { url, poolSize, connectTimeoutMs: connect_timeout_ms, commandTimeoutMs: command_timeout_ms, tls };
}

/** Opens the server; `create` is that of a module that is loaded by now. */
export function openRedis(
  create: RedisMaker,
  use: RedisUse,
  settings: RedisSettings,
  { clock, deadlines, log, redisUnanswered }: RedisInUseParts,
  more: Pick<RedisParts, "check" | "returned" | "waitedMs">,
): Redis {
  const unanswered = () => redisUnanswered(use);
  return create({ ...more, settings, use, unanswered, deadlines, now: clock.now, random: Math.random, log });
}
