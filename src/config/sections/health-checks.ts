// Section health_checks: how often backends are probed, and when they count as down (docs/backends.md).

import { z } from "zod";
import { positiveDuration, urlPath, whole } from "./fields.ts";
import { defineSection } from "./section.ts";

export const healthChecksSection = defineSection({
  description: "How backends are watched.",
  schema: z.strictObject({
    enabled: z.boolean().default(true).describe("false: every enabled backend counts as available."),
    interval: positiveDuration().prefault("30s"),
    timeout: positiveDuration().prefault("10s"),
    unhealthy_threshold: whole(1, 100).default(3).describe("Failures in a row until a backend is unhealthy."),
    healthy_threshold: whole(1, 100).default(2).describe("Successes in a row until it is healthy again."),
    endpoint: urlPath().optional().describe("Probe path for every backend without one of its own; default: by kind."),
    warmup_check_interval: positiveDuration()
      .prefault("1s")
      .describe("Interval while a backend is loading or not reachable."),
    max_warmup_duration: positiveDuration()
      .prefault("300s")
      .describe("A backend that loads longer than this is unhealthy."),
  }),
});
