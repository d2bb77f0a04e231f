// Section deduplication: identical requests in flight share one call of a backend.

import { z } from "zod";
import { positiveDuration } from "./fields.ts";
import { defineSection } from "./section.ts";

const DEDUPLICATION_MODES = ["deterministic", "all", "off"] as const;

export type DeduplicationMode = (typeof DEDUPLICATION_MODES)[number];

export const deduplicationSection = defineSection({
  isExtension: true,
  description: "Identical requests of one caller that are in flight together share one call of a backend.",
  schema: z.strictObject({
    mode: z
      .enum(DEDUPLICATION_MODES)
      .default("deterministic")
      .describe("deterministic: temperature is 0, or the same Idempotency-Key. all: parallel sampling collapses too."),
    ttl: positiveDuration().prefault("60s").describe("How long after its start a request can be joined."),
  }),
});
