// The rows of GET /admin/backends: what the control plane knows of each backend, without secrets.

import { displayUrl } from "../backends/backend.ts";
import type { BackendBoard, BackendEntry, HealthState } from "../backends/board.ts";
import type { HealthChecker } from "../health/checker.ts";
import type { BackendKindName } from "../names.ts";
import type { CircuitState } from "../routing/circuit-breaker.ts";

/** One row of GET /admin/backends (specification, "Backend status"). */
export interface BackendStatus {
  name: string;
  url: string;
  type: BackendKindName;
  enabled: boolean;
  is_healthy: boolean;
  state: HealthState;
  /** State of the circuit breaker. */
  circuit: CircuitState;
  consecutive_failures: number;
  consecutive_successes: number;
  last_check: string | null;
  last_error: string | null;
  response_time_ms: number | null;
  models: readonly string[];
  weight: number;
  in_flight: number;
  total_requests: number;
  failed_requests: number;
}

export interface BackendStatusList {
  backends: BackendStatus[];
  healthy_count: number;
  total_count: number;
  summary: {
    total_models: number;
    total_requests: number;
    total_failures: number;
    average_response_time_ms: number | null;
  };
}

export function toStatusList(
  board: BackendBoard,
  checker: HealthChecker | undefined,
  modelIds: (name: string) => readonly string[],
  circuitState: (name: string) => CircuitState,
): BackendStatusList {
  const backends = board.entries.map((entry) =>
    toStatus(entry, checker, modelIds(entry.backend.name), circuitState(entry.backend.name)),
  );
  const times = backends.flatMap((row) => row.response_time_ms ?? []);
  return {
    backends,
    healthy_count: backends.filter((row) => row.is_healthy).length,
    total_count: backends.length,
    summary: {
      total_models: new Set(backends.flatMap((row) => row.models)).size,
      total_requests: sum(backends.map((row) => row.total_requests)),
      total_failures: sum(backends.map((row) => row.failed_requests)),
      average_response_time_ms: times.length === 0 ? null : Math.round(sum(times) / times.length),
    },
  };
}

function toStatus(
  { backend, health, available, counters }: BackendEntry,
  checker: HealthChecker | undefined,
  models: readonly string[],
  circuit: CircuitState,
): BackendStatus {
  const view = checker?.view(backend.name);
  return {
    name: backend.name,
    url: displayUrl(backend),
    type: backend.kind.name,
    enabled: backend.enabled,
    is_healthy: available,
    state: health,
    circuit,
    consecutive_failures: view?.record.consecutiveFailures ?? 0,
    consecutive_successes: view?.record.consecutiveSuccesses ?? 0,
    last_check: view?.lastCheckAtMs === undefined ? null : new Date(view.lastCheckAtMs).toISOString(),
    last_error: view?.lastOutcome?.reason ?? null,
    response_time_ms: view?.lastOutcome === undefined ? null : Math.round(view.lastOutcome.latencyMs),
    models,
    weight: backend.weight,
    in_flight: counters.inFlight,
    total_requests: counters.totalRequests,
    failed_requests: counters.failedRequests,
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
