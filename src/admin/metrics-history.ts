// GET /admin/metrics/history: earlier values of a metric.

import type { Clock } from "../lib/clock.ts";
import type { HistoryStore } from "../metrics/history/store.ts";
import type { Endpoint } from "../server/endpoint.ts";
import { adminRoute } from "./endpoint.ts";
import { queryHistory } from "./history-view.ts";
import { queryOf } from "./request.ts";

export interface MetricsHistoryParts {
  /** Undefined: no history is kept. */
  history: HistoryStore | undefined;
  clock: Clock;
}

export function metricsHistoryRoutes({ history, clock }: MetricsHistoryParts): Endpoint[] {
  return [
    adminRoute(
      "GET",
      "/admin/metrics/history",
      async (call) => {
        const body = await queryHistory(history, queryOf(call), clock.wallTime());
        return new Response(body, {
          headers: { ...call.headers, "Content-Type": "application/json", "Cache-Control": "no-store" },
        });
      },
      ["metric", "from", "to", "limit"],
    ),
  ];
}
