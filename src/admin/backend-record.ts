// A backend as the admin API shows it: its settings with masked secrets, its state and its counters.

import type { Mapping } from "../config/values/values.ts";

/** What is known of a backend that runs (specification, "Backend status"), as far as it is needed here. */
export interface BackendRow {
  name: string;
  url: string;
  enabled: boolean;
  /** draining: removed from the configuration or disabled. */
  phase: "active" | "draining";
  state: "unknown" | "ready" | "warming_up" | "down" | "unhealthy";
  is_healthy: boolean;
  can_be_asked: boolean;
  circuit: string;
  /** Served now, asked from the backend or configured. */
  models: readonly string[];
  in_flight: number;
  total_requests: number;
  failed_requests: number;
}

/** From the statistics. */
export interface BackendUsage {
  averageLatencyMs: number | undefined;
  lastUsedMs: number | undefined;
}

const HEALTH: Readonly<Record<BackendRow["state"], string>> = {
  unknown: "unknown",
  ready: "healthy",
  warming_up: "warming_up",
  down: "unhealthy",
  unhealthy: "unhealthy",
};

/** `settings` are those of the masked view. Nothing is known of a backend that does not run yet. */
export function toRecord(settings: Mapping, row: BackendRow | undefined, usage: BackendUsage | undefined) {
  const configured = Array.isArray(settings.models) && settings.models.length > 0 ? settings.models : undefined;
  return {
    ...settings,
    url: settings.url ?? row?.url ?? null,
    models: configured ?? row?.models ?? [],
    api_key: settings.api_key ?? null,
    health_status: row === undefined ? "unknown" : HEALTH[row.state],
    stats: {
      total_requests: row?.total_requests ?? 0,
      failed_requests: row?.failed_requests ?? 0,
      average_latency_ms: usage?.averageLatencyMs ?? null,
      last_used: usage?.lastUsedMs === undefined ? null : new Date(usage.lastUsedMs).toISOString(),
    },
  };
}
