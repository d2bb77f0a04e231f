// Section routing: how a backend is chosen, and how long model lists are kept.

import { z } from "zod";
import { headerName, positiveDuration } from "./fields.ts";
import { defineSection } from "./section.ts";

export const STRATEGY_NAMES = [
  "RoundRobin",
  "WeightedRoundRobin",
  "LeastLatency",
  "Random",
  "ConsistentHash",
  "PrefixAwareHash",
] as const;

export type StrategyName = (typeof STRATEGY_NAMES)[number];

function resolveStrategy(spelling: string): StrategyName | undefined {
  const plain = spelling.replaceAll(/[_-]/g, "").toLowerCase();
  return STRATEGY_NAMES.find((name) => name.toLowerCase() === plain);
}

export const strategy = () =>
  z
    .string()
    .refine((spelling) => resolveStrategy(spelling) !== undefined, {
      message: `unknown strategy; known are ${STRATEGY_NAMES.join(", ")}`,
    })
    .transform((spelling) => resolveStrategy(spelling) as StrategyName);

export const routingSection = defineSection({
  description: "How a backend is chosen among the healthy ones that serve a model.",
  schema: z.strictObject({
    selection_strategy: strategy()
      .prefault("RoundRobin")
      .describe(`${STRATEGY_NAMES.join(", ")} (also in the form round_robin).`),
    session_affinity: z
      .strictObject({
        header: headerName().default("X-Session-ID").describe("Request header that names the session."),
        load_factor: z
          .number()
          .min(1)
          .max(100)
          .default(1.25)
          .describe(
            "A backend takes at most this many times its share of the open requests; beyond it the next one does.",
          ),
      })
      .prefault({})
      .describe("ConsistentHash: a session is the header, else prompt_cache_key, user, or the conversation's start."),
    model_list_cache: z
      .strictObject({
        ttl: positiveDuration().prefault("5m").describe("How long a backend's model list is used."),
        soft_ttl_ratio: z
          .number()
          .gt(0)
          .max(1)
          .default(0.8)
          .describe("After this part of the ttl the list is renewed in the background."),
        empty_ttl: positiveDuration()
          .prefault("5s")
          .describe("First ttl of an empty list; doubles up to empty_ttl_max."),
        empty_ttl_max: positiveDuration().prefault("60s"),
      })
      .prefault({})
      .describe("Model lists of backends without configured models."),
  }),
  aliases: { strategy: "selection_strategy" },
});
