// Section response_cache: answers that are given again to identical requests (docs/resilience.md).

import { z } from "zod";
import { bucketFields, keyPrefix } from "./bucket-fields.ts";
import { positiveDuration, whole } from "./fields.ts";
import { redisServer } from "./redis-server.ts";
import { defineSection } from "./section.ts";

const backend = z.enum(["memory", "tiered", "redis"], { error: "unknown; known are memory, tiered and redis" });

const tiered = z.strictObject({
  l1: z
    .strictObject({
      type: z.enum(["memory"], { error: "expected memory" }).default("memory"),
      max_value_size: whole(1).default(1_048_576).describe("Bytes of the largest answer that is kept in memory, too."),
    })
    .prefault({})
    .describe("The memory in front; capacity and max_total_size bound it."),
  l2: z
    .strictObject({
      ...bucketFields("backend tiered"),
      key_prefix: keyPrefix("response-cache/"),
      ttl_override: positiveDuration()
        .optional()
        .describe("How long an answer is given again from the bucket. Default: ttl."),
    })
    .prefault({})
    .describe("A bucket of an S3-compatible server."),
  promote_on_hit: z.boolean().default(true).describe("Whether an answer from the bucket is kept in memory again."),
  l1_promotion_ttl: positiveDuration()
    .prefault("5m")
    .describe("How long; never longer than it would be kept in the bucket."),
});

const redis = z.strictObject({
  ...redisServer({ commandTimeoutMs: 1_000, keyPrefix: "cr:resp:" }),
  pool_size: whole(1, 64).default(8).describe("Most connections; they are opened when all others are in use."),
  fallback_to_memory: z
    .boolean()
    .default(true)
    .describe("While Redis is away: true keeps answers in memory, false keeps none."),
});

export const responseCacheSection = defineSection({
  isExtension: true,
  restartFields: ["backend"],
  description: "Answers to requests with temperature 0, or without one, that are given again to identical requests.",
  schema: z.strictObject({
    enabled: z.boolean().default(false),
    backend: backend
      .default("memory")
      .describe(
        "memory: in this process. tiered: in memory and in a bucket. redis: in Redis, shared by all that use it.",
      ),
    capacity: whole(1, 10_000_000).default(1_000).describe("Answers kept; the least recently used one goes."),
    ttl: positiveDuration().prefault("5m").describe("How long an answer is given again."),
    max_response_size: whole(1).default(1_048_576).describe("Bytes of the largest plain answer that is kept."),
    max_stream_buffer_size: whole(1)
      .default(10_485_760)
      .describe("Bytes of the longest stream that is kept; a longer one is passed on, but not kept."),
    max_total_size: whole(1)
      .default(268_435_456)
      .describe("Bytes of all answers kept, and as many again of streams being collected."),
    tiered: tiered.prefault({}).describe("For backend tiered."),
    redis: redis.prefault({}).describe("For backend redis."),
  }),
  secretPaths: ["tiered.l2.access_key", "tiered.l2.secret_key"],
  urlPaths: ["redis.url"],
  sentTo: ["tiered.l2.endpoint", "tiered.l2.bucket", "tiered.l2.region", "redis.url", "redis.tls"],
  filePaths: { "redis.url": { use: "redis-socket" } },
});
