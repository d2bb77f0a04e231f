// Section admission: how many requests backends are sent at once, and who waits for whom (docs/queue.md).

import { z } from "zod";
import { positiveDuration, text, whole } from "./fields.ts";
import { defineSection } from "./section.ts";

const MOST_CLASSES = 20;
const TENANTS = ["organization", "user", "key"] as const;

export const queueClass = () =>
  text()
    .max(64)
    .regex(/^[A-Za-z0-9_-]+$/, "expected letters, digits, _ and -");

const maxConcurrent = () =>
  z.union([whole(1, 1_000_000), z.enum(["auto", "none"])], { error: "expected a whole number, auto or none" });

const maxTokens = () => whole(1, 1_000_000_000);

const tokenWeight = () => z.number().min(0).max(1000);

const classSchema = z.strictObject({
  weight: z
    .number()
    .gt(0, "must be greater than 0")
    .max(1_000_000)
    .describe("Its part of the tokens, beside those of the other classes, while all of them wait."),
  max_wait: positiveDuration().optional().describe("Longest wait of its requests. Default: queue.max_wait."),
});

export const admissionSection = defineSection({
  isExtension: true,
  reload: "immediate",
  description: "A fair queue in front of the backends: how much each is sent at once, and which request is next.",
  schema: z.strictObject({
    enabled: z.boolean().default(false).describe("false: every request is sent to a backend at once."),
    per_backend: z
      .strictObject({
        max_concurrent: maxConcurrent()
          .default("auto")
          .describe("Requests at once. auto: found by how the latency of the backend changes; none: without a limit."),
        max_tokens_in_flight: maxTokens()
          .optional()
          .describe("Tokens of all requests at once: of their input, and of the output that is expected."),
      })
      .prefault({})
      .describe("Of each backend without an entry in backends."),
    backends: z
      .record(
        text(),
        z.strictObject({ max_concurrent: maxConcurrent().optional(), max_tokens_in_flight: maxTokens().optional() }),
      )
      .default({})
      .describe("The same of single backends, by their names."),
    gateways: whole(1, 1000)
      .default(1)
      .describe(
        "Gateways in front of the same backends that share no Redis: each of them has this part of all numbers above.",
      ),
    token_weights: z
      .strictObject({
        input: tokenWeight().default(1),
        cached_input: tokenWeight().default(0.1).describe("Input tokens that the backend had in its cache."),
        output: tokenWeight().default(2),
      })
      .prefault({})
      .describe("What a token counts in the service that a tenant has had."),
    queue: z
      .strictObject({
        max_waiting: whole(1, 100_000)
          .default(1000)
          .describe("Requests that wait for the same backends. Beyond, the tenant with the most of them gets 429."),
        max_wait: positiveDuration().prefault("30s").describe("Longest wait of a request whose class names none."),
        fair_by: z
          .array(z.enum(TENANTS))
          .max(TENANTS.length)
          .refine((names) => new Set(names).size === names.length, "must not name a level twice")
          .default(["organization", "key"])
          .describe("Who gets equal parts: first organizations, then the keys of each, as they are listed."),
        classes: z
          .record(queueClass(), classSchema)
          .refine((classes) => Object.hasOwn(classes, "default"), "must have a class default")
          .refine((classes) => Object.keys(classes).length <= MOST_CLASSES, `must be at most ${MOST_CLASSES} classes`)
          .prefault({
            interactive: { weight: 10, max_wait: "15s" },
            default: { weight: 5 },
            batch: { weight: 1, max_wait: "24h" },
          })
          .describe("Kinds of requests, by key, route, X-Signalbox-Priority or service_tier."),
      })
      .prefault({}),
  }),
});

export type AdmissionSettings = z.output<typeof admissionSection.schema>;
