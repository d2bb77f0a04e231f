// /admin/stats…: statistics of requests, models and backends, what they cost, and their reset.

import { TIME_FORMS } from "../lib/parse-time.ts";
import { done } from "../openapi/change-schemas.ts";
import {
  count,
  described,
  list,
  namedShape,
  number,
  oneOfTexts,
  orNull,
  schemasOf,
  shape,
  text,
  texts,
  time,
  type ValueOf,
} from "../openapi/json-schema.ts";
import { type DescribedEndpoint, jsonAnswer, queryParameter } from "../openapi/operation.ts";
import type { StatsCollector } from "../stats/collector.ts";
import { COST_GROUPS, costsView } from "./costs-view.ts";
import { adminGroup, answer } from "./endpoint.ts";
import type { AdminParts } from "./parts.ts";
import type { AdminPath } from "./paths.ts";
import { queryOf, readWindow, STATS_WINDOW_NAMES, type StatsWindow, timeText, WINDOW_NAMES } from "./query.ts";
import { backendStatsView, modelStatsView, requireStats, resetStats, statsView } from "./stats-view.ts";

const counts = {
  total_requests: count,
  successful_requests: count,
  failed_requests: described(count, "That the gateway or a backend could not answer."),
  refused_requests: described(count, "That are at fault themselves, or beyond a limit: no failures."),
};
const tokens = { total_prompt_tokens: count, total_completion_tokens: count, total_tokens: count };
const statsFrame = { uptime_seconds: count, window: oneOfTexts(...STATS_WINDOW_NAMES) };
const statsRow = {
  ...counts,
  ...tokens,
  avg_latency_ms: number,
  avg_tokens_per_sec: number,
  last_used: time,
};
const percentiles = { p50_latency_ms: number, p95_latency_ms: number, p99_latency_ms: number };
const costSums = {
  requests: count,
  prompt_tokens: count,
  completion_tokens: count,
  cost: described(number, "By the prices of the model metadata, in their currency."),
};

export const ModelStatistics = namedShape("ModelStatistics", { model_id: text, ...statsRow });
export type ModelStatistics = ValueOf<typeof ModelStatistics>;
export const BackendStatistics = namedShape("BackendStatistics", {
  backend_name: text,
  ...statsRow,
  ...percentiles,
  p50_first_token_ms: orNull(number),
  p95_first_token_ms: orNull(number),
  p99_first_token_ms: orNull(number),
});
export type BackendStatistics = ValueOf<typeof BackendStatistics>;
export const Statistics = namedShape("Statistics", {
  ...statsFrame,
  overall: shape({
    ...counts,
    ...tokens,
    avg_latency_ms: number,
    ...percentiles,
    tokens_per_sec_avg: number,
  }),
  models: list(ModelStatistics),
  backends: list(BackendStatistics),
});
export type Statistics = ValueOf<typeof Statistics>;
const StatisticsOfModels = namedShape("StatisticsOfModels", { ...statsFrame, models: list(ModelStatistics) });
const StatisticsOfBackends = namedShape("StatisticsOfBackends", { ...statsFrame, backends: list(BackendStatistics) });
const StatisticsOfCosts = namedShape(
  "StatisticsOfCosts",
  {
    total_cost: number,
    currency: described(text, "Of all costs (admin.stats.currency)."),
    unpriced_models: described(texts, "Models whose tokens have no price, so that their cost is 0."),
  },
  {
    keys: list(shape({ key_id: text, model_id: text, ...costSums })),
    by: oneOfTexts(...COST_GROUPS),
    rows: list(
      shape(
        { ...costSums, cached_tokens: described(count, "Of the prompt tokens.") },
        { key_id: text, user_id: text, organization_id: text, model_id: text, backend_name: text, day: text },
      ),
    ),
  },
);
export const Done = namedShape("Done", done);

const SCHEMAS = schemasOf(
  Statistics,
  StatisticsOfModels,
  StatisticsOfBackends,
  ModelStatistics,
  BackendStatistics,
  StatisticsOfCosts,
  Done,
);

const endpoint = adminGroup("Observation", SCHEMAS);
export const statsWindow = queryParameter(
  "window",
  "Left out: since the last reset.",
  oneOfTexts(...STATS_WINDOW_NAMES),
);

export function statsRoutes({ collector }: Pick<AdminParts, "collector">): DescribedEndpoint[] {
  return [
    statistics(
      "/admin/stats",
      "getStatistics",
      "Statistics",
      "Statistics of all requests, models and backends",
      statsView,
    ),
    statistics(
      "/admin/stats/models",
      "getModelStatistics",
      "StatisticsOfModels",
      "Statistics of models",
      modelStatsView,
    ),
    statistics(
      "/admin/stats/backends",
      "getBackendStatistics",
      "StatisticsOfBackends",
      "Statistics of backends",
      backendStatsView,
    ),
    endpoint("GET /admin/stats/costs", {
      id: "getCosts",
      role: "viewer",
      summary: "Costs per key and model, or by something else",
      description: "The dearest first. Counted by the hour, and what is older than eight days by the day.",
      parameters: [
        queryParameter("by", "Left out: key and model.", oneOfTexts(...COST_GROUPS)),
        queryParameter("window", "Left out: since the last reset.", oneOfTexts(...WINDOW_NAMES)),
        queryParameter("since", `${TIME_FORMS}; the hour of it counts as a whole.`, timeText),
        queryParameter("until", "The same, exclusive.", timeText),
      ],
      answers: [jsonAnswer(StatisticsOfCosts, "The costs.")],
      errors: [404],
      handle: (call) => answer(call, costsView(requireStats(collector), queryOf(call))),
    }),
    endpoint("POST /admin/stats/reset", {
      id: "resetStatistics",
      role: "operator",
      summary: "Reset statistics",
      answers: [jsonAnswer(Done, "Cleared.")],
      errors: [404],
      handle: (call) => answer(call, resetStats(requireStats(collector))),
    }),
  ];

  function statistics(
    path: AdminPath,
    id: string,
    schema: string,
    summary: string,
    view: (counted: StatsCollector, window: StatsWindow) => unknown,
  ): DescribedEndpoint {
    return endpoint(`GET ${path}`, {
      role: "viewer",
      id,
      summary,
      parameters: [statsWindow],
      answers: [jsonAnswer(schema, "The statistics.")],
      errors: [404],
      handle(call) {
        const counted = requireStats(collector);
        return answer(call, view(counted, readWindow(queryOf(call), STATS_WINDOW_NAMES, counted.nowMs)));
      },
    });
  }
}
