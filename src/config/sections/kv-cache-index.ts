// Section kv_cache_index: which backend has which prefix in its cache (docs/scaling.md).

import { z } from "zod";
import { text, whole } from "./fields.ts";
import { strategy } from "./routing.ts";
import { defineSection } from "./section.ts";

const weight = () => z.number().min(0).max(100);
const share = () => z.number().min(0).max(1);

const eventSource = z.strictObject({
  backend_name: text().describe("The backend that tells of its cache."),
  endpoint: z
    .string()
    .regex(/^(https?:\/\/[^\s/]\S*|\/\S*)$/, 'expected a path such as "/kv/events", or a URL')
    .describe("Path on the backend, or a URL. The backend's credential goes to the backend's own address only."),
  reconnect_interval_ms: whole(10, 3_600_000)
    .default(5_000)
    .describe("Milliseconds before the first attempt to connect again; doubles with each failure, up to a minute."),
});

export const kvCacheIndexSection = defineSection({
  isExtension: true,
  description: "An index of the prefixes that backends have in their KV caches; requests go where theirs is.",
  schema: z.strictObject({
    enabled: z.boolean().default(false),
    backend: z
      .enum(["memory"], { error: "unknown; known is memory" })
      .default("memory")
      .describe("memory: in this process, learnt again after a restart."),
    max_entries: whole(1, 10_000_000)
      .default(100_000)
      .describe(
        "Blocks of prompts at backends, 48 bytes each. When all are in use, the backend with the most gives up what it did not use for longest.",
      ),
    entry_ttl_seconds: whole(1, 31_536_000).default(600).describe("How long an entry counts after its last use."),
    scoring: z
      .strictObject({
        overlap_weight: weight().default(0.6).describe("Of the share of the prompt that a backend has in its cache."),
        load_weight: weight().default(0.3).describe("Of its room: 1 minus its requests in flight by the most of all."),
        health_weight: weight().default(0.1).describe("Of the share of its last 100 requests that went well."),
        min_overlap_threshold: share()
          .default(0.3)
          .describe("The index decides when a backend has this share of the prompt; else selection_strategy does."),
        gpu_tier_weight: weight().default(1.0).describe("What a block counts for in the GPU's memory."),
        storage_tier_weight: weight().default(0.6).describe("What a block counts for in the storage behind it."),
      })
      .prefault({}),
    fallback_strategy: strategy()
      .prefault("LeastLatency")
      .describe(
        "What chooses below the threshold where selection_strategy is PrefixAwareHash, which has no more to say.",
      ),
    storage_offloading: z
      .strictObject({
        enabled: z.boolean().default(false).describe("The engines keep blocks in storage that leave their GPU."),
        treat_eviction_as_offload: z
          .boolean()
          .default(true)
          .describe("A block that is evicted from the GPU is in the storage."),
      })
      .prefault({}),
    event_sources: z
      .array(eventSource)
      .default([])
      .describe("Server-sent events of engines that tell what is in their caches."),
  }),
  entryNames: { event_sources: ["backend_name"] },
});
