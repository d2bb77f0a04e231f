// The operations of the admin API that show how the gateway is doing, and /metrics.

import { COST_GROUPS, COST_WINDOW_MS } from "../admin/costs-view.ts";
import { WINDOW_NAMES } from "../admin/query.ts";
import { EXPOSITION_TYPE } from "../metrics/registry.ts";
import { type AdminOperation, OF_A_BODY, OF_ADMIN, ofAdmin } from "./admin-operation.ts";
import { oneOfTexts, ref } from "./json-schema.ts";
import { answer, type Operation, pathParameter, queryParameter } from "./operation.ts";

const requestId = pathParameter(
  "request_id",
  "From the header X-Signalbox-Request-ID of the answer, or from X-Request-ID: of several requests the newest.",
);
const statsWindow = queryParameter("window", "Left out: since the last reset.", oneOfTexts("all", ...WINDOW_NAMES));

const PARTS: readonly AdminOperation[] = [
  {
    method: "get",
    path: "/admin/health",
    id: "getAdminHealth",
    summary: "Health of the gateway and of its parts",
    answers: [
      answer("AdminHealth", "Healthy or degraded."),
      { status: 503, description: "Unhealthy.", schema: ref("AdminHealth") },
    ],
    errors: OF_ADMIN,
  },
  ...statistics("", "getStatistics", "Statistics", "Statistics of all requests, models and backends"),
  ...statistics("/models", "getModelStatistics", "StatisticsOfModels", "Statistics of models"),
  ...statistics("/backends", "getBackendStatistics", "StatisticsOfBackends", "Statistics of backends"),
  {
    method: "get",
    path: "/admin/stats/costs",
    id: "getCosts",
    summary: "Costs per key and model, or by something else",
    description: "The dearest first. Counted by the hour, and what is older than eight days by the day.",
    parameters: [
      queryParameter("by", "Left out: key and model.", oneOfTexts(...COST_GROUPS)),
      queryParameter("window", "Left out: since the last reset.", oneOfTexts("all", ...Object.keys(COST_WINDOW_MS))),
      queryParameter("since", "Unix milliseconds or RFC 3339; the hour of it counts as a whole."),
      queryParameter("until", "The same, exclusive."),
    ],
    answers: [answer("StatisticsOfCosts", "The costs.")],
    errors: [...OF_ADMIN, 404],
  },
  {
    method: "post",
    path: "/admin/stats/reset",
    id: "resetStatistics",
    summary: "Begin statistics anew",
    answers: [answer("Done", "Cleared.")],
    errors: [...OF_ADMIN, 404],
  },
  {
    method: "get",
    path: "/admin/metrics/history",
    id: "getMetricsHistory",
    summary: "Earlier values of a metric",
    parameters: [
      { ...queryParameter("metric", "Name of a metric family."), required: true },
      queryParameter("from", "Unix milliseconds or RFC 3339, inclusive; default: 24 hours ago."),
      queryParameter("to", "The same, exclusive; default: now."),
      queryParameter("limit", "Most samples, up to 100,000.", { type: "integer", minimum: 1, default: 10_000 }),
    ],
    answers: [answer("MetricsHistory", "The samples.")],
    errors: [...OF_ADMIN, 404],
  },
  {
    method: "get",
    path: "/admin/errors/recent",
    id: "listErrors",
    summary: "The errors that clients were answered with lately",
    parameters: [
      queryParameter("limit", "Most errors.", { type: "integer", minimum: 1, default: 50 }),
      queryParameter("type", "Only of this type."),
      queryParameter("backend", "Only with attempts at this backend."),
    ],
    answers: [answer("RecentErrors", "The errors, the newest first.")],
    errors: OF_ADMIN,
  },
  {
    method: "get",
    path: "/admin/errors/stats",
    id: "getErrorStatistics",
    summary: "How many errors of which kind",
    parameters: [statsWindow],
    answers: [answer("ErrorStatistics", "The numbers.")],
    errors: OF_ADMIN,
  },
  {
    method: "get",
    path: "/admin/errors/{request_id}",
    id: "getError",
    summary: "The error of one request",
    parameters: [requestId],
    answers: [answer("ErrorRecord", "The error.")],
    errors: [...OF_ADMIN, 404],
  },
  {
    method: "post",
    path: "/admin/debug/error",
    id: "recordTestError",
    summary: "Record a test error",
    body: { schema: ref("DebugErrorRequest"), example: { type: "timeout", backend: "local" } },
    answers: [answer("DebugError", "Recorded.")],
    errors: [...OF_A_BODY, 404],
  },
  {
    method: "get",
    path: "/admin/requests",
    id: "listRequests",
    summary: "The latest requests, the newest first",
    parameters: [
      queryParameter("model", "Asked for, or answering."),
      queryParameter("backend", "Of any attempt."),
      queryParameter("status", "Such as 502, or 5xx."),
      queryParameter("key", "Id of the caller's key."),
      queryParameter("min_duration_ms", "At least so long.", { type: "integer", minimum: 0 }),
      queryParameter("since", "Unix milliseconds or RFC 3339, inclusive."),
      queryParameter("until", "The same, exclusive."),
      queryParameter("id", "A part of either id."),
      queryParameter("limit", "Most requests, up to 1,000.", { type: "integer", minimum: 1, default: 50 }),
      queryParameter("cursor", "next_cursor of the page before."),
    ],
    answers: [answer("Requests", "The requests.")],
    errors: OF_ADMIN,
  },
  {
    method: "get",
    path: "/admin/requests/{request_id}",
    id: "explainRequest",
    summary: "What became of one request, step by step",
    parameters: [requestId],
    answers: [answer("RequestStory", "The explanation.")],
    errors: [...OF_ADMIN, 404],
  },
  {
    method: "get",
    path: "/admin/response-cache",
    id: "getResponseCache",
    summary: "Counters of the response cache",
    answers: [answer("ResponseCacheStatistics", "The counters.")],
    errors: OF_ADMIN,
  },
  {
    method: "delete",
    path: "/admin/response-cache",
    id: "clearResponseCache",
    summary: "Forget kept answers",
    parameters: [queryParameter("model", "Only answers of this model.")],
    answers: [answer("ResponseCacheCleared", "Forgotten.")],
    errors: [...OF_ADMIN, 404],
  },
];

function statistics(path: string, id: string, schema: string, summary: string): AdminOperation[] {
  return [
    {
      method: "get",
      path: `/admin/stats${path}`,
      id,
      summary,
      parameters: [statsWindow],
      answers: [answer(schema, "The statistics.")],
      errors: [...OF_ADMIN, 404],
    },
  ];
}

export const OBSERVATION_OPERATIONS: readonly Operation[] = [
  ...ofAdmin("Observation", PARTS),
  {
    method: "get",
    path: "/metrics",
    id: "getMetrics",
    tag: "Observation",
    audience: "metrics",
    summary: "Metrics in the text format of Prometheus",
    description: "The path is that of metrics.endpoint.",
    answers: [{ status: 200, description: "The metrics.", type: EXPOSITION_TYPE.split(";")[0] as string }],
    errors: [401, 404, 500],
  },
];
