// Every path that shows how the gateway is doing: health, statistics, metrics and their history, errors, stories of
// requests; and the prompt files.

import type { Endpoint } from "../server/endpoint.ts";
import { type ErrorParts, errorRoutes } from "./errors.ts";
import { type HealthParts, healthRoutes } from "./health.ts";
import { type MetricsParts, metricsRoutes } from "./metrics.ts";
import { type MetricsHistoryParts, metricsHistoryRoutes } from "./metrics-history.ts";
import { type PromptParts, promptRoutes } from "./prompts.ts";
import { type RequestParts, requestRoutes } from "./requests.ts";
import { type StatsParts, statsRoutes } from "./stats.ts";

export interface TelemetryParts
  extends StatsParts,
    MetricsParts,
    MetricsHistoryParts,
    ErrorParts,
    RequestParts,
    PromptParts,
    HealthParts {
  clock: HealthParts["clock"];
}

export function telemetryRoutes(parts: TelemetryParts): Endpoint[] {
  return [
    ...promptRoutes(parts),
    ...healthRoutes(parts),
    ...statsRoutes(parts),
    ...metricsRoutes(parts),
    ...metricsHistoryRoutes(parts),
    ...errorRoutes(parts),
    ...requestRoutes(parts),
  ];
}
