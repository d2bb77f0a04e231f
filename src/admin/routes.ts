// Every endpoint of the control plane but the metrics (metrics.ts), in the order of the OpenAPI document. All of them stand
// behind one door: access "admin" (admin-auth.ts).

import type { DescribedEndpoint } from "../openapi/operation.ts";
import { createRequestSearch } from "../request-log/search.ts";
import { acpRoutes } from "./acp.ts";
import { auditRoutes } from "./audit.ts";
import { backendRoutes } from "./backends.ts";
import { batchRoutes } from "./batches.ts";
import { budgetRoutes } from "./budgets.ts";
import { configHistoryRoutes } from "./config-history.ts";
import { configReadRoutes } from "./config-read.ts";
import { configStagedRoutes } from "./config-staged.ts";
import { configTransferRoutes } from "./config-transfer.ts";
import { configWriteRoutes } from "./config-write.ts";
import { dataSetRoutes } from "./data-sets.ts";
import { errorRoutes } from "./errors.ts";
import { eventRoutes } from "./events.ts";
import { feedbackAdminRoutes } from "./feedback.ts";
import { fileRoutes } from "./files.ts";
import { healthRoutes } from "./health.ts";
import { keyRoutes } from "./keys.ts";
import { kvIndexRoutes } from "./kv-index.ts";
import { metricsHistoryRoutes } from "./metrics-history.ts";
import { modelRouteRoutes } from "./model-routes.ts";
import { notificationRoutes } from "./notifications.ts";
import { oidcRoutes } from "./oidc.ts";
import { organizationRoutes } from "./organizations.ts";
import type { AdminParts } from "./parts.ts";
import { promptRoutes } from "./prompts.ts";
import { queueRoutes } from "./queue.ts";
import { recordingRoutes } from "./recordings.ts";
import { replayRoutes } from "./replays.ts";
import { requestRoutes } from "./requests.ts";
import { responseCacheRoutes } from "./response-cache.ts";
import { sessionRoutes } from "./session.ts";
import { statsRoutes } from "./stats.ts";
import { usageRoutes } from "./usage.ts";
import { workerRoutes } from "./workers.ts";

export function adminRoutes(parts: AdminParts): DescribedEndpoint[] {
  const search = createRequestSearch({ stories: parts.stories, log: parts.requestLog, clock: parts.clock });
  const routes: DescribedEndpoint[] = [
    ...sessionRoutes({ ...parts, all: () => routes }),
    ...oidcRoutes(parts),
    ...configReadRoutes(parts),
    ...configWriteRoutes(parts),
    ...configStagedRoutes(parts),
    ...configTransferRoutes(parts),
    ...configHistoryRoutes(parts),
    ...promptRoutes(parts),
    ...backendRoutes(parts),
    ...keyRoutes(parts),
    ...budgetRoutes(parts),
    ...modelRouteRoutes(parts),
    ...organizationRoutes(parts),
    ...notificationRoutes(parts),
    ...auditRoutes(parts),
    ...healthRoutes(parts),
    ...statsRoutes(parts),
    ...usageRoutes(parts),
    ...metricsHistoryRoutes(parts),
    ...eventRoutes(parts),
    ...errorRoutes({ ...parts, search }),
    ...requestRoutes({ ...parts, search }),
    ...recordingRoutes(parts),
    ...dataSetRoutes(parts),
    ...replayRoutes(parts),
    ...feedbackAdminRoutes(parts),
    ...responseCacheRoutes(parts),
    ...kvIndexRoutes(parts),
    ...queueRoutes(parts),
    ...fileRoutes(parts),
    ...batchRoutes(parts),
    ...workerRoutes(parts),
    ...acpRoutes(parts),
  ];
  return routes;
}
