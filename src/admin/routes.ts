// Every endpoint of the control plane, in the order of the OpenAPI document. All but the metrics stand behind one door:
// access "admin" (admin-auth.ts).

import type { ConfigStore } from "../config/store/store.ts";
import type { DescribedEndpoint } from "../openapi/operation.ts";
import { type BackendParts, backendRoutes } from "./backends.ts";
import { configHistoryRoutes } from "./config-history.ts";
import { type ConfigReadParts, configReadRoutes } from "./config-read.ts";
import { configStagedRoutes } from "./config-staged.ts";
import { type ConfigTransferParts, configTransferRoutes } from "./config-transfer.ts";
import { configWriteRoutes } from "./config-write.ts";
import { type ErrorParts, errorRoutes } from "./errors.ts";
import { type HealthParts, healthRoutes } from "./health.ts";
import { type KeyParts, keyRoutes } from "./keys.ts";
import { type MetricsParts, metricsRoutes } from "./metrics.ts";
import { type MetricsHistoryParts, metricsHistoryRoutes } from "./metrics-history.ts";
import { type PromptParts, promptRoutes } from "./prompts.ts";
import { type RequestParts, requestRoutes } from "./requests.ts";
import { type ResponseCacheParts, responseCacheRoutes } from "./response-cache.ts";
import { type StatsParts, statsRoutes } from "./stats.ts";

/** Nothing of it is looked at before a request asks for it, but the path of the metrics. */
export type AdminParts = { store: ConfigStore } & BackendParts &
  ConfigReadParts &
  ConfigTransferParts &
  ErrorParts &
  HealthParts &
  KeyParts &
  MetricsHistoryParts &
  MetricsParts &
  PromptParts &
  RequestParts &
  ResponseCacheParts &
  StatsParts;

export function adminRoutes(parts: AdminParts): DescribedEndpoint[] {
  return [
    ...configReadRoutes(parts),
    ...configWriteRoutes(parts),
    ...configStagedRoutes(parts),
    ...configTransferRoutes(parts),
    ...configHistoryRoutes(parts),
    ...promptRoutes(parts),
    ...backendRoutes(parts),
    ...keyRoutes(parts),
    ...healthRoutes(parts),
    ...statsRoutes(parts),
    ...metricsHistoryRoutes(parts),
    ...errorRoutes(parts),
    ...requestRoutes(parts),
    ...responseCacheRoutes(parts),
    ...metricsRoutes(parts),
  ];
}
