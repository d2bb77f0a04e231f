// What sections say of a Redis or Valkey server that they use.

import { z } from "zod";
import { readRedisUrl } from "../values/redis-url.ts";
import { whole } from "./fields.ts";

const EXPECTED =
  'expected a URL such as "redis://host:6379", "rediss://:password@host/0", "redis+unix:///path" or "unix:/path"';

interface RedisServerDefaults {
  commandTimeoutMs: number;
  keyPrefix: string;
}

export const redisServer = ({ commandTimeoutMs, keyPrefix }: RedisServerDefaults) => ({
  url: z
    .string()
    .refine((url) => readRedisUrl(url) !== undefined, EXPECTED)
    .optional()
    .describe("redis://, rediss://, redis+unix:///path or unix:/path, with user, password and database where needed."),
  key_prefix: z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/, "expected 1 to 128 visible characters of ASCII")
    .default(keyPrefix)
    .describe("What the names of all keys begin with."),
  connect_timeout_ms: whole(1, 60_000).default(3_000).describe("For a new connection."),
  command_timeout_ms: whole(1, 1_000)
    .default(commandTimeoutMs)
    .describe("For one command; after it the gateway goes on without Redis."),
  tls: z.boolean().default(false).describe("true: TLS for redis:// too."),
});
