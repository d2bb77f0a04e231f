// Backends as the admin API shows them: what runs, and one with its settings, whose secrets are masked.

import { displayUrl } from "../backends/backend.ts";
import type { Mapping } from "../config/values/values.ts";
import type { BackendState, BackendStates } from "../fleet/status.ts";
import type { BackendRecord, BackendStatus, BackendStatusList } from "./backend-schemas.ts";
import { toTimestamp } from "./endpoint.ts";

export interface BackendUsage {
  averageLatencyMs: number | undefined;
  lastUsedMs: number | undefined;
}

/**
 * The body of GET /admin/backends.
 * @param wallMs - Unix milliseconds now
 */
export function toStatusList({ configured, removed }: BackendStates, wallMs: number): BackendStatusList {
  const rows = configured.map((state) => toStatus(state, wallMs));
  const times = rows.flatMap((row) => row.response_time_ms ?? []);
  return {
    backends: [...rows, ...removed.map((state) => toStatus(state, wallMs))],
    healthy_count: rows.filter((row) => row.is_healthy).length,
    askable_count: rows.filter((row) => row.can_be_asked).length,
    total_count: rows.length,
    summary: {
      total_models: new Set(rows.flatMap((row) => row.models)).size,
      total_requests: sum(rows.map((row) => row.total_requests)),
      total_failures: sum(rows.map((row) => row.failed_requests)),
      average_response_time_ms: times.length === 0 ? null : Math.round(sum(times) / times.length),
    },
  };
}

function toStatus(state: BackendState, wallMs: number): BackendStatus {
  const { backend, counters, drain, view } = state;
  return {
    name: backend.name,
    url: displayUrl(backend),
    type: backend.kind.name,
    enabled: backend.enabled,
    phase: drain === undefined ? "active" : "draining",
    drain_remaining_ms: drain === undefined ? null : Math.round(drain.remainingMs),
    is_healthy: state.available,
    can_be_asked: state.askable,
    state: state.health,
    circuit: state.circuit,
    circuit_since: state.circuitTroubledMs === undefined ? null : toTimestamp(wallMs - state.circuitTroubledMs),
    consecutive_failures: view?.record.consecutiveFailures ?? 0,
    consecutive_successes: view?.record.consecutiveSuccesses ?? 0,
    last_check: view?.lastCheckAtMs === undefined ? null : toTimestamp(view.lastCheckAtMs),
    last_error: counters.credentialError ?? view?.lastOutcome?.reason ?? null,
    response_time_ms: view?.lastOutcome === undefined ? null : Math.round(view.lastOutcome.latencyMs),
    models: state.models,
    weight: backend.weight,
    in_flight: counters.inFlight,
    total_requests: counters.totalRequests,
    failed_requests: counters.failedRequests,
  };
}

const HEALTH = {
  unknown: "unknown",
  ready: "healthy",
  warming_up: "warming_up",
  down: "unhealthy",
  unhealthy: "unhealthy",
} as const;

/**
 * @param settings - those of the masked view
 * @param state - undefined for a backend that does not run yet
 */
export function toRecord(
  settings: Mapping,
  state: BackendState | undefined,
  usage: BackendUsage | undefined,
): BackendRecord {
  const configured = Array.isArray(settings.models) && settings.models.length > 0 ? settings.models : undefined;
  return {
    ...(settings as Pick<BackendRecord, "name" | "type" | "weight" | "enabled">),
    url: (settings.url as string | undefined) ?? (state === undefined ? null : displayUrl(state.backend)),
    models: configured ?? state?.models ?? [],
    api_key: (settings.api_key as string | undefined) ?? null,
    health_status: HEALTH[state?.health ?? "unknown"],
    stats: {
      total_requests: state?.counters.totalRequests ?? 0,
      failed_requests: state?.counters.failedRequests ?? 0,
      average_latency_ms: usage?.averageLatencyMs ?? null,
      last_used: usage?.lastUsedMs === undefined ? null : toTimestamp(usage.lastUsedMs),
    },
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
