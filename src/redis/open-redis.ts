// The Redis server that a section of the configuration names: opened with its first settings, and again when they change.

import { remade } from "../config/compile/part.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Clock } from "../lib/clock.ts";
import type { Deadlines } from "../lib/deadlines.ts";
import type { Logger } from "../logging/logger.ts";
import type { Redis, RedisParts } from "./redis.ts";

/** Shared by all Redis servers of a gateway. */
export interface RedisSurroundings {
  clock: Clock;
  deadlines: Deadlines;
  log: Pick<Logger, "info" | "warn">;
  /** Called when a command of this use had no good answer. */
  redisUnanswered(use: string): void;
}

interface Use extends Pick<RedisParts, "returned" | "waitedMs"> {
  use: "response_cache" | "rate_limiting" | "budgets" | "admission" | "batches";
  /** Most connections. */
  poolSize: number;
  /** Commands may wait at the server for so long before it answers. */
  blockMs?: number | undefined;
  check: RedisParts["check"];
}

/** Where a server is; without a URL the configuration wants something else after the next start, and the server stays. */
type RedisPlace = Pick<
  Settings["response_cache"]["redis"],
  "url" | "connect_timeout_ms" | "command_timeout_ms" | "tls"
>;

/** @param useOf - what it is used for, by the settings that it is opened with */
export function createRedisServer<Place extends RedisPlace>(
  { clock, deadlines, log, redisUnanswered }: RedisSurroundings,
  useOf: (place: Place) => Use,
) {
  const server = remade<Place, { place: Place; redis: Redis } | undefined>({
    make(place, before) {
      const { url, connect_timeout_ms: connectTimeoutMs, command_timeout_ms: commandTimeoutMs, tls } = place;
      if (url === undefined) return before;
      const { createRedis } = require("./redis.ts") as typeof import("./redis.ts");
      const { poolSize, blockMs = 0, ...use } = useOf(place);
      const redis = createRedis({
        ...use,
        settings: { url, poolSize, connectTimeoutMs, commandTimeoutMs: commandTimeoutMs + blockMs, tls },
        unanswered: () => redisUnanswered(use.use),
        deadlines,
        now: clock.now,
        random: Math.random,
        log,
      });
      return { place, redis };
    },
    end: (opened) => opened?.redis.close(),
  });
  return {
    of: server.of,
    get isThere(): boolean | undefined {
      return server.now?.redis.isThere;
    },
    /** How long a request may have waited for the server at this URL, while it is away; else 0. */
    waitedMs(url: string): number {
      const { redis, place } = server.now ?? {};
      return redis?.isThere === false && place?.url === url ? place.command_timeout_ms : 0;
    },
    stop: server.stop,
  };
}
