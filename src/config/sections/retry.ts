// Section retry: attempts on one model (docs/resilience.md).

import { z } from "zod";
import { duration, httpStatus, positiveDuration, whole } from "./fields.ts";
import { defineSection } from "./section.ts";

export const retryFields = {
  max_attempts: whole(1, 20).default(3).describe("The first attempt counts."),
  base_delay: duration().prefault("100ms").describe("Wait after the first failure."),
  max_delay: positiveDuration().prefault("10s").describe("Longest wait, also where Retry-After asks for a longer one."),
  backoff_multiplier: z.number().min(1).max(10).default(2).describe("Growth of the wait per failure."),
  jitter: z.boolean().default(true).describe("Spread each wait over its upper half."),
  status_codes: z
    .array(httpStatus().min(400, "only an error status, 400 to 599, can be retried"))
    .default([429, 502, 503, 504])
    .describe("Answers of a backend that are retried."),
};

export const retrySection = defineSection({
  reload: "immediate",
  description: "Attempts on one model before the request fails. Connection errors and timeouts are always retried.",
  schema: z.strictObject(retryFields),
  aliases: { initial_delay: "base_delay" },
});
