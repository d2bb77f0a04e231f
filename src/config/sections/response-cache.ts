// Section response_cache: answers that are given again to identical requests (specification, Limits, "Response cache").

import { z } from "zod";
import { positiveDuration, whole } from "./fields.ts";
import { defineSection } from "./section.ts";

const backend = z.enum(["memory"], {
  error: ({ input }) =>
    input === "redis" || input === "tiered" ? 'is not available yet; use "memory"' : "unknown; known is memory",
});

export const responseCacheSection = defineSection({
  isExtension: true,
  restartFields: ["backend"],
  description: "Answers to requests with temperature 0, or without one, that are given again to identical requests.",
  schema: z.strictObject({
    enabled: z.boolean().default(false),
    backend: backend.default("memory").describe("memory: in this process, lost when it ends."),
    capacity: whole(1, 10_000_000).default(1_000).describe("Answers kept; the least recently used one goes."),
    ttl: positiveDuration().prefault("5m").describe("How long an answer is given again."),
    max_response_size: whole(1).default(1_048_576).describe("Bytes of the largest plain answer that is kept."),
    max_stream_buffer_size: whole(1)
      .default(10_485_760)
      .describe("Bytes of the longest stream that is kept; a longer one is passed on, but not kept."),
    max_total_size: whole(1)
      .default(268_435_456)
      .describe("Bytes of all answers kept, and as many again of streams being collected."),
  }),
});
