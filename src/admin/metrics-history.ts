// GET /admin/metrics/history: earlier values of a metric.

import { TIME_FORMS } from "../lib/parse-time.ts";
import {
  count,
  integer,
  list,
  mapOf,
  namedShape,
  number,
  oneOfTexts,
  schemasOf,
  shape,
  text,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import { adminGroup, answerText } from "./endpoint.ts";
import { queryHistory } from "./history-view.ts";
import type { AdminParts } from "./parts.ts";
import { queryOf, timeText } from "./query.ts";

const MetricsHistory = namedShape("MetricsHistory", {
  metric: text,
  from_ms: integer,
  to_ms: integer,
  row_count: count,
  limit: count,
  samples: list(
    shape({
      ts_ms: integer,
      labels: mapOf(text),
      value: number,
      kind: oneOfTexts(
        "counter",
        "gauge",
        "histogram_sum",
        "histogram_count",
        "histogram_bucket",
        "summary_sum",
        "summary_count",
        "summary_quantile",
        "untyped",
      ),
    }),
  ),
});

const SCHEMAS = schemasOf(MetricsHistory);

const endpoint = adminGroup("Observation", SCHEMAS);

export function metricsHistoryRoutes({ history, clock }: Pick<AdminParts, "history" | "clock">): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/metrics/history", {
      id: "getMetricsHistory",
      summary: "Earlier values of a metric",
      parameters: [
        {
          ...queryParameter("metric", "Name of a metric family.", { ...text, minLength: 1, maxLength: 256 }),
          required: true,
        },
        queryParameter("from", `${TIME_FORMS}; inclusive; default: 24 hours ago.`, timeText),
        queryParameter("to", "The same, exclusive; default: now.", timeText),
        queryParameter("limit", "Most samples, up to 100,000.", { type: "integer", minimum: 1, default: 10_000 }),
      ],
      answers: [jsonAnswer(MetricsHistory, "The samples.")],
      errors: [404],
      async handle(call) {
        const body = await queryHistory(history, queryOf(call), clock.wallTime());
        return answerText<ValueOf<typeof MetricsHistory>>(call, body);
      },
    }),
  ];
}
