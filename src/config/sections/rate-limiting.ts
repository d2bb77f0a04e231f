// Section rate_limiting: how many requests clients, keys and backends may make (docs/resilience.md).

import { z } from "zod";
import { addressRange } from "../values/address-range.ts";
import { redisServer } from "./redis-server.ts";
import { defineSection } from "./section.ts";

/** Keeps the arithmetic of the buckets in whole numbers (rate-limit/token-bucket.ts) far from their end. */
const MOST_REQUESTS = 1_000_000;

/** A number of requests; also for `rate_limit` of a key. */
export const requestCount = (belowOne = "must be at least 1") =>
  z
    .int({ error: "expected a whole number of requests, 1 or more" })
    .min(1, belowOne)
    .max(MOST_REQUESTS, `must be at most ${MOST_REQUESTS}`);

const BELOW_ONE = "must be at least 1; limits are switched off with rate_limiting.enabled: false";

/**
 * burst_capacity may be below requests_per_second: then requests have to come spread over the second. Left out, it
 * follows requests_per_second, so that a raised rate is not held back by the burst of the default.
 */
const limit = (requestsPerSecond: number, description: string) =>
  z
    .strictObject({
      requests_per_second: requestCount(BELOW_ONE).default(requestsPerSecond),
      burst_capacity: requestCount(BELOW_ONE)
        .optional()
        .describe("Most requests at once; default: twice requests_per_second."),
    })
    .transform(({ requests_per_second, burst_capacity }) => ({
      requests_per_second,
      burst_capacity: burst_capacity ?? Math.min(2 * requests_per_second, MOST_REQUESTS),
    }))
    .prefault({})
    .describe(description);

export const rateLimitingSection = defineSection({
  reload: "immediate",
  description:
    "Limits of requests. rate_limit of a key (section api_keys) holds whether this section is enabled or not.",
  schema: z.strictObject({
    enabled: z.boolean().default(false).describe("Whether the limits below hold."),
    storage: z
      .enum(["memory", "redis"], { error: "expected memory or redis" })
      .default("memory")
      .describe(
        "Where limits and budgets are counted, and the order of the queue is kept. memory: in this process. redis: in Redis, for all gateways that use it.",
      ),
    redis: z
      .strictObject(redisServer({ commandTimeoutMs: 250, keyPrefix: "cr:limit:" }))
      .prefault({})
      .describe("For storage redis."),
    limits: z
      .strictObject({
        per_client: limit(10, "For each client address; IPv6 clients count by their /64 network."),
        per_backend: limit(100, "For each backend, attempts of retries included; another backend takes over."),
        per_api_key: limit(10, "For each key without a rate_limit of its own."),
        global: limit(1000, "For all clients together."),
      })
      .prefault({}),
    whitelist: z
      .array(addressRange())
      .default([])
      .describe("Addresses and CIDR ranges of clients that only the limits of backends hold for."),
    bypass_keys: z
      .array(z.string().min(8, "at least 8 characters"))
      .default([])
      .describe("API keys that only the limits of backends hold for."),
    headers_on_success: z
      .boolean()
      .default(false)
      .describe("Whether answers to admitted requests tell the state of the limit too; each costs a little CPU."),
  }),
  restartFields: ["storage"],
  secretPaths: ["bypass_keys.*"],
  urlPaths: ["redis.url"],
  sentTo: ["redis.url", "redis.tls"],
  filePaths: { "redis.url": { use: "redis-socket" } },
});

export type RateLimitingSettings = z.output<typeof rateLimitingSection.schema>;
