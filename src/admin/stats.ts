// /admin/stats…: statistics of requests, models and backends, what they cost, and beginning anew.

import type { Endpoint } from "../server/endpoint.ts";
import type { StatsCollector } from "../stats/collector.ts";
import { COST_PARAMETERS, costsView } from "./costs-view.ts";
import { adminRoute, answer } from "./endpoint.ts";
import { readWindow, type StatsWindow } from "./query.ts";
import { queryOf } from "./request.ts";
import { backendStatsView, modelStatsView, requireStats, resetStats, statsView } from "./stats-view.ts";

export interface StatsParts {
  collector: StatsCollector;
}

export function statsRoutes({ collector }: StatsParts): Endpoint[] {
  const view = (path: string, of: (counted: StatsCollector, window: StatsWindow) => unknown): Endpoint =>
    adminRoute("GET", path, (call) => answer(call, of(requireStats(collector), readWindow(queryOf(call)))), ["window"]);

  return [
    view("/admin/stats", statsView),
    view("/admin/stats/models", modelStatsView),
    view("/admin/stats/backends", backendStatsView),
    adminRoute(
      "GET",
      "/admin/stats/costs",
      (call) => answer(call, costsView(requireStats(collector), queryOf(call))),
      COST_PARAMETERS,
    ),
    adminRoute("POST", "/admin/stats/reset", (call) => answer(call, resetStats(requireStats(collector)))),
  ];
}
