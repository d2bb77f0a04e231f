// Every endpoint of the gateway, as it would be served: to be looked at, not to be called.

import { metricsRoutes } from "../../src/admin/metrics.ts";
import { adminRoutes } from "../../src/admin/routes.ts";
import { publicRoutes } from "../../src/api/routes.ts";
import type { DescribedEndpoint } from "../../src/openapi/operation.ts";
import { openApiRoute } from "../../src/openapi/route.ts";

/** Stands for whatever they are made of. */
const hollow: unknown = new Proxy(() => hollow, { get: () => hollow });
/** The path of the metrics comes from the configuration. */
const settings: unknown = { settings: () => ({ metrics: { endpoint: "/metrics" } }) };

export const ADMIN_ENDPOINTS: readonly DescribedEndpoint[] = adminRoutes(hollow as Parameters<typeof adminRoutes>[0]);

export const ENDPOINTS: readonly DescribedEndpoint[] = [
  ...publicRoutes(hollow as Parameters<typeof publicRoutes>[0]),
  ...metricsRoutes(settings as Parameters<typeof metricsRoutes>[0]),
  openApiRoute(async () => ENDPOINTS),
  ...ADMIN_ENDPOINTS,
];
