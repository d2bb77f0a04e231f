// Section circuit_breaker: when a backend that fails is left alone, and how it is tried again.

import { z } from "zod";
import { DURATION_PATTERN, parseDuration } from "../../lib/duration.ts";
import { overridesOf } from "./fields.ts";
import { defineSection } from "./section.ts";

const count = () => z.int().min(1, "must be at least 1; enabled: false switches the circuit breaker off").max(100_000);

const rate = z
  .number()
  .gt(0, "must be above 0; 0.5 opens the circuit when half of the recent requests failed")
  .max(1, "must be at most 1, which means that every recent request failed");

const TIMEOUT_FORM = 'expected a duration such as "60s", or a number of seconds';
const PLAIN_NUMBER = "\\d+(\\.\\d+)?";

/**
 * A plain number is a number of seconds, as the spelling timeout_seconds promises. One key instead of two, so that the
 * environment overrides the file whichever spelling either uses, and giving both in one place is refused. The
 * environment and `${VARIABLE}` hand the number over as text.
 */
const timeout = (): z.ZodType<number, string | number> =>
  z
    .union([z.string().regex(new RegExp(`${DURATION_PATTERN}|^${PLAIN_NUMBER}$`), TIMEOUT_FORM), z.number()], {
      error: TIMEOUT_FORM,
    })
    .transform((value) => parseDuration(String(value)) ?? Math.round(Number(value) * 1_000))
    .refine((durationMs) => durationMs > 0, "must be longer than zero")
    .describe("How long an open circuit refuses every request; a plain number is seconds.") as z.ZodType<
    number,
    string | number
  >;

const failureStatus = z
  .int()
  .min(500, "must be 500 to 599: a client's own mistake and overload (429) never count as failures")
  .max(599, "must be 500 to 599");

const circuitFields = {
  enabled: z.boolean().default(true),
  failure_threshold: count()
    .default(5)
    .describe("Failures in a row that open the circuit; those that arrive together count once."),
  failure_rate_threshold: rate
    .default(0.5)
    .describe("Share of failures among the requests of the last minute that opens it too."),
  minimum_requests: count().default(10).describe("The share means something only from this many requests on."),
  timeout: timeout().prefault("60s"),
  half_open_max_requests: count().default(3).describe("Requests at one time that try the backend after the timeout."),
  // May exceed half_open_max_requests: a request that has ended makes room for the next one.
  success_threshold: count()
    .default(2)
    .describe("Successes of these that close the circuit; a single failure opens it again."),
  panic: z
    .boolean()
    .default(true)
    .describe(
      "Try the backend before the timeout where the circuits of all backends of a model would refuse a request.",
    ),
  failure_status_codes: z
    .array(failureStatus)
    .default([500, 502, 503, 504])
    .describe("503 with Retry-After is overload and does not count; failed connections and timeouts always do."),
};

export const circuitBreakerSection = defineSection({
  reload: "immediate",
  description: "A backend that keeps failing gets no requests for a while, then a few to try it. State is per backend.",
  schema: z.strictObject({
    ...circuitFields,
    backends: z.record(z.string(), overridesOf(circuitFields)).default({}).describe("Overrides by backend name."),
  }),
  aliases: {
    timeout_seconds: "timeout",
    reset_timeout: "timeout",
    half_open_success_threshold: "success_threshold",
    "backends.*.timeout_seconds": "timeout",
    "backends.*.reset_timeout": "timeout",
    "backends.*.half_open_success_threshold": "success_threshold",
  },
});

export type CircuitBreakerSettings = z.output<typeof circuitBreakerSection.schema>;

/** The settings of one backend. */
export type CircuitPolicy = Omit<CircuitBreakerSettings, "backends">;

/** The section with a backend's overrides. */
export function circuitPolicyFor(backendName: string, settings: CircuitBreakerSettings): CircuitPolicy {
  const { backends, ...policy } = settings;
  const own = Object.hasOwn(backends, backendName) ? backends[backendName] : undefined;
  return own === undefined ? policy : ({ ...policy, ...own } as CircuitPolicy);
}
