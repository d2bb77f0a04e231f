// GET /admin/metrics/history: earlier values of a metric; /admin/metrics/series: the same at even steps, for charts.

import { TIME_FORMS } from "../lib/parse-time.ts";
import {
  count,
  described,
  integer,
  list,
  mapOf,
  namedShape,
  number,
  oneOfTexts,
  orNull,
  schemasOf,
  shape,
  text,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import { adminGroup, answer, answerText } from "./endpoint.ts";
import { LABELS_PATTERN, QUANTILES_PATTERN, queryHistory, querySeries } from "./history-view.ts";
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

const SeriesReport = namedShape("MetricSeries", {
  metric: text,
  from_ms: integer,
  to_ms: integer,
  step_ms: described(count, "Length of a step; the last one may be shorter."),
  kind: described(
    orNull(oneOfTexts("rate", "gauge", "quantile")),
    "What the values are: per second, of a counter; the last one of each step; quantiles, of a histogram. null: no samples.",
  ),
  series: described(
    list(shape({ labels: mapOf(text), values: list(orNull(number)) })),
    "The largest first; one value for each step, null where nothing is known.",
  ),
});
export type SeriesReport = ValueOf<typeof SeriesReport>;

const SCHEMAS = schemasOf(MetricsHistory, SeriesReport);

const endpoint = adminGroup("Observation", SCHEMAS);

const range = [
  {
    ...queryParameter("metric", "Name of a metric family.", { ...text, minLength: 1, maxLength: 256 }),
    required: true,
  },
  queryParameter("from", `${TIME_FORMS}; inclusive; default: 24 hours ago.`, timeText),
  queryParameter("to", "The same, exclusive; default: now.", timeText),
];

export function metricsHistoryRoutes({
  history,
  clock,
  settings,
}: Pick<AdminParts, "history" | "clock" | "settings">): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/metrics/history", {
      id: "getMetricsHistory",
      role: "viewer",
      summary: "Earlier values of a metric",
      parameters: [
        ...range,
        queryParameter("limit", "Most samples, up to 100,000.", { type: "integer", minimum: 1, default: 10_000 }),
      ],
      answers: [jsonAnswer(MetricsHistory, "The samples.")],
      errors: [404],
      async handle(call) {
        const body = await queryHistory(history, queryOf(call), clock.wallTime());
        return answerText<ValueOf<typeof MetricsHistory>>(call, body);
      },
    }),
    endpoint("GET /admin/metrics/series", {
      id: "getMetricSeries",
      role: "viewer",
      summary: "A metric over time, at even steps",
      parameters: [
        ...range,
        queryParameter(
          "step",
          "Seconds of a step; default: a 300th of the time, and no less than a snapshot's interval.",
          {
            type: "integer",
            minimum: 1,
          },
        ),
        queryParameter("by", "Up to four labels with commas between that tell the series apart; others are summed.", {
          ...text,
          pattern: LABELS_PATTERN,
        }),
        queryParameter("quantiles", "Of a histogram: up to four numbers from 0 to 1, with commas between.", {
          ...text,
          pattern: QUANTILES_PATTERN,
          default: "0.5,0.95",
        }),
        queryParameter("limit", "Most series, up to 100.", { type: "integer", minimum: 1, default: 20 }),
      ],
      answers: [jsonAnswer(SeriesReport, "The series.")],
      errors: [404],
      async handle(call) {
        const { snapshot_interval_seconds: seconds } = settings().metrics.persistence;
        return answer(call, await querySeries(history, queryOf(call), clock.wallTime(), seconds));
      },
    }),
  ];
}
