// Section fallback: which model answers when another cannot (docs/resilience.md).

import { z } from "zod";
import { httpStatus, whole } from "./fields.ts";
import { defineSection } from "./section.ts";

export const fallbackSection = defineSection({
  description: "Which models answer, in order, when the backends of the requested one cannot.",
  schema: z.strictObject({
    enabled: z.boolean().default(true),
    fallback_chains: z
      .record(z.string(), z.array(z.string().min(1)).min(1, "must name at least one model"))
      .default({})
      .describe("Model -> the models that stand in for it, in order; of any backend type."),
    fallback_policy: z
      .strictObject({
        trigger_conditions: z
          .strictObject({
            error_codes: z
              .array(httpStatus().min(429, "a client's own error never falls back; 429 and 5xx can"))
              .default([429, 500, 502, 503, 504])
              .describe("Answers of a backend that lead to the next model."),
            timeout: z.boolean().default(true),
            connection_error: z.boolean().default(true).describe("Also: no backend of the model is available."),
            circuit_breaker_open: z.boolean().default(true),
          })
          .prefault({}),
        max_fallback_attempts: whole(1, 20).default(3).describe("Models of a chain that are tried at most."),
        fallback_timeout_multiplier: z
          .number()
          .min(1)
          .max(10)
          .default(1.5)
          .describe("The timeouts of a model that stands in are longer by this factor."),
      })
      .prefault({}),
  }),
});
