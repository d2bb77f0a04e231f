// Section metrics: the endpoint for Prometheus, and the history of its samples (docs/metrics.md).

import { z } from "zod";
import { text, urlPath, userName, whole } from "./fields.ts";
import { defineSection } from "./section.ts";

/** Paths of the API itself. */
const TAKEN = /^\/(v1|admin|anthropic|healthz?|readyz|rerank|embed_sparse|openapi\.json|favicon\.ico)(\/|$)/;
/** A path that has only one spelling. */
const PLAIN = /^(\/(?!\.{1,2}(\/|$))[A-Za-z0-9._~-]+)+$/;

const DAILY = /^([0-5]?\d) ([01]?\d|2[0-3]) \* \* \*$/;

const persistence = z.strictObject({
  enabled: z.boolean().default(true).describe("false: no history is kept."),
  backend: z
    .enum(["sqlite"], { error: "expected sqlite; no other storage is available" })
    .default("sqlite")
    .describe("Where samples are kept."),
  path: text().default("./data/metrics.db").describe("A path below ./data lies in server.data_dir."),
  snapshot_interval_seconds: whole(1, 86_400).default(60).describe("Seconds between two samples."),
  retention_days: whole(1, 365).default(15).describe("Days that samples are kept."),
  compaction: z
    .strictObject({
      enabled: z.boolean().default(true).describe("Whether old samples are removed and the file is made smaller."),
      schedule: z
        .string()
        .regex(DAILY, 'expected the minute and the hour of a daily run, such as "0 3 * * *"')
        .default("0 3 * * *")
        .describe("When: minute and hour of every day."),
    })
    .prefault({}),
});

export const metricsSection = defineSection({
  restartFields: ["endpoint", "persistence.backend", "persistence.path", "persistence.enabled"],
  description: "Metrics for Prometheus, and their history.",
  schema: z.strictObject({
    enabled: z.boolean().default(true).describe("false: the endpoint answers 404."),
    endpoint: urlPath()
      .refine((path) => PLAIN.test(path), "expected segments of letters, digits and . _ ~ -, such as /metrics")
      .refine((path) => !TAKEN.test(path), "this path is taken; choose another, such as /metrics")
      .default("/metrics"),
    by_key: z
      .boolean()
      .default(true)
      .describe("Metrics of each key, with its id and organization as labels; false: none of them."),
    auth: z
      .strictObject({
        enabled: z.boolean().default(false),
        username: userName().optional(),
        password: text().optional(),
      })
      .prefault({})
      .describe("Basic credentials of the endpoint."),
    persistence: persistence.prefault({}).describe("Samples for GET /admin/metrics/history."),
  }),
  filePaths: { "persistence.path": { use: "written", endings: [".db", ".sqlite", ".sqlite3"] } },
  secretPaths: ["auth.password"],
  credentials: [{ at: "auth", secrets: ["password"], fields: ["password"] }],
});
