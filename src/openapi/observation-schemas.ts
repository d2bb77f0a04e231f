// Answers of the admin API about health, statistics, metrics, errors, requests and the response cache, as JSON Schema.

import { COST_GROUPS } from "../admin/costs-view.ts";
import { WINDOW_NAMES } from "../admin/query.ts";
import { OUTCOMES } from "../admin/request-view.ts";
import type { JsonSchema } from "../config/schema/schema-export.ts";
import { done } from "./change-schemas.ts";
import {
  count,
  described,
  flag,
  list,
  mapOf,
  number,
  oneOfTexts,
  orNull,
  type Properties,
  ref,
  shape,
  strictRequest,
  text,
  time,
} from "./json-schema.ts";

const health = ["healthy", "degraded", "unhealthy"] as const;
const counts: Properties = { total_requests: count, successful_requests: count, failed_requests: count };
const tokens: Properties = { total_prompt_tokens: count, total_completion_tokens: count, total_tokens: count };
const statsFrame: Properties = { uptime_seconds: count, window: oneOfTexts("all", ...WINDOW_NAMES) };
const statsRow: Properties = {
  ...counts,
  ...tokens,
  avg_latency_ms: number,
  avg_tokens_per_sec: number,
  last_used: time,
};
const percentiles: Properties = { p50_latency_ms: number, p95_latency_ms: number, p99_latency_ms: number };
const costSums: Properties = {
  requests: count,
  prompt_tokens: count,
  completion_tokens: count,
  cost: described(number, "By the prices of the model metadata, in their currency."),
};
const countsByName = mapOf(count);

const requestRow: Properties = {
  id: text,
  request_id: text,
  started_at: time,
  finished: flag,
  outcome: oneOfTexts(...OUTCOMES),
  operation: text,
  model: text,
  answered_by: orNull(text),
  stream: flag,
  key_id: orNull(text),
  backend: orNull(text),
  status: orNull({ type: "integer" }),
  failure: orNull(text),
  attempts: count,
  duration_ms: number,
  first_byte_ms: orNull(number),
  prompt_tokens: orNull(count),
  completion_tokens: orNull(count),
};

export const OBSERVATION_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  AdminHealth: shape({
    status: oneOfTexts(...health),
    version: text,
    uptime: described(count, "Seconds."),
    timestamp: time,
    services: shape({
      backend_service: ref("ServiceHealth"),
      model_service: ref("ServiceHealth"),
      proxy_service: ref("ServiceHealth"),
      health_service: ref("ServiceHealth"),
      storage_service: ref("ServiceHealth"),
    }),
    metrics: shape({
      requests_per_second: number,
      error_rate: number,
      memory_usage_mb: number,
      cpu_usage_percent: described(number, "Of one core."),
    }),
  }),
  ServiceHealth: shape({ status: oneOfTexts(...health, "disabled"), message: text }),
  Statistics: shape({
    ...statsFrame,
    overall: shape({
      ...counts,
      ...tokens,
      avg_latency_ms: number,
      ...percentiles,
      tokens_per_sec_avg: number,
    }),
    models: list(ref("ModelStatistics")),
    backends: list(ref("BackendStatistics")),
  }),
  StatisticsOfModels: shape({ ...statsFrame, models: list(ref("ModelStatistics")) }),
  StatisticsOfBackends: shape({ ...statsFrame, backends: list(ref("BackendStatistics")) }),
  ModelStatistics: shape({ model_id: text, ...statsRow }),
  BackendStatistics: shape({
    backend_name: text,
    ...statsRow,
    ...percentiles,
    p50_first_token_ms: orNull(number),
    p95_first_token_ms: orNull(number),
    p99_first_token_ms: orNull(number),
  }),
  StatisticsOfCosts: shape(
    { total_cost: number },
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
  ),
  Done: shape(done),
  MetricsHistory: shape({
    metric: text,
    from_ms: { type: "integer" },
    to_ms: { type: "integer" },
    row_count: count,
    limit: count,
    samples: list(
      shape({
        ts_ms: { type: "integer" },
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
  }),
  RecentErrors: shape({ errors: list(ref("ErrorRecord")), total: count }),
  ErrorRecord: shape({
    id: text,
    request_id: text,
    timestamp: time,
    status: { type: "integer" },
    type: text,
    code: { type: ["string", "integer", "null"] },
    message: text,
    model: orNull(text),
    backend: orNull(text),
    attempts: list(shape({ backend: text, failure: text }, { model: text, duration_ms: number })),
  }),
  ErrorStatistics: shape({
    total: count,
    by_type: countsByName,
    by_status: countsByName,
    by_backend: countsByName,
    window: text,
  }),
  DebugErrorRequest: strictRequest({
    type: {
      type: "string",
      pattern: "^(timeout|connection_error|circuit_open|status_[45][0-9][0-9])$",
      description: "timeout, connection_error, circuit_open, or status_ and a status from 400 to 599.",
    },
    backend: described(text, "Name of a backend."),
  }),
  DebugError: shape({ ...done, error: ref("ErrorRecord") }),
  Requests: shape({ requests: list(shape(requestRow)), total: count, next_cursor: orNull(text) }),
  RequestStory: shape({
    ...requestRow,
    cache: orNull(shape({ decision: oneOfTexts("HIT", "MISS", "BYPASS"), reason: orNull(text) })),
    timings: shape({
      total_ms: number,
      gateway_ms: orNull(number),
      backend_ms: orNull(number),
      first_token_ms: orNull(number),
      first_byte_ms: orNull(number),
      waiting_ms: number,
    }),
    steps: list(ref("RequestStep")),
    steps_dropped: count,
    others: list(text),
  }),
  RequestStep: requestStep(),
  ResponseCacheStatistics: {
    oneOf: [
      shape({ enabled: { const: false } }),
      shape({
        enabled: { const: true },
        backend: text,
        capacity: count,
        max_bytes: count,
        entries: count,
        bytes: count,
        hits: count,
        misses: count,
        stores: count,
        evictions: count,
        expirations: count,
        models: list(shape({ model: text, hits: count, misses: count, stores: count, entries: count, bytes: count })),
      }),
    ],
  },
  ResponseCacheCleared: shape({ ...done, removed: count }),
};

function requestStep(): JsonSchema {
  const step = (kinds: readonly string[], members: Properties): JsonSchema =>
    shape({ kind: oneOfTexts(...kinds), at_ms: number, ...members });
  const candidate = shape({ backend: text }, { score: number, in_flight: count, latency_ms: number, excluded: text });
  return {
    oneOf: [
      step(["attempt"], {
        backend: text,
        model: text,
        strategy: orNull(text),
        score_means: orNull(text),
        candidates: list(candidate),
        outcome: oneOfTexts("failed", "running", "succeeded"),
        failure: orNull(text),
        status: orNull({ type: "integer" }),
        duration_ms: orNull(number),
        first_byte_ms: orNull(number),
      }),
      step(["wait"], { duration_ms: number, reason: text }),
      step(["fallback", "takeover"], { from: text, to: text, reason: text }),
      step(["shared"], { leader: text }),
      step(["refused"], { reason: text }),
    ],
  };
}
