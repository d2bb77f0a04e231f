// What is said of backends, without secrets: the rows of GET /admin/backends, and in words for clients why one is away.

import { type Backend, type BackendCounters, displayUrl } from "../backends/backend.ts";
import type { BackendBoard, HealthState } from "../backends/board.ts";
import type { Drain } from "../backends/drains.ts";
import type { HealthChecker, HealthView } from "../health/checker.ts";
import { withoutPaths } from "../health/probe.ts";
import type { ModelCatalog } from "../models/catalog.ts";
import type { CircuitState } from "../routing/circuit-breaker.ts";
import type { Circuits } from "../routing/circuits.ts";
import { canBeAsked } from "./can-be-asked.ts";

/** The body of GET /admin/backends (specification, "Backend status"). */
export type BackendStatusList = ReturnType<typeof toStatusList>;

interface StatusSources {
  drains: readonly Drain[];
  checker: HealthChecker;
  catalog: ModelCatalog;
  circuits: Circuits;
}

/** The configured backends in their order, and behind them those that were removed and still finish requests. */
export function toStatusList(board: BackendBoard, sources: StatusSources) {
  const { checker, catalog, circuits } = sources;
  const drains = new Map(sources.drains.map((drain) => [drain.counters, drain]));
  const configured = board.entries.map((entry) => {
    const { backend, counters, health, available } = entry;
    const { name } = backend;
    const drain = drains.get(counters);
    drains.delete(counters);
    const circuit = circuits.state(name);
    const models = catalog.list(name).map(({ id }) => id);
    const askable = canBeAsked(entry, circuits);
    return toStatus(backend, counters, drain, {
      health,
      available,
      askable,
      circuit,
      models,
      view: checker.view(name),
    });
  });
  const removed = [...drains.values()].map((drain) => toStatus(drain.backend, drain.counters, drain, REMOVED));
  const times = configured.flatMap((row) => row.response_time_ms ?? []);
  return {
    backends: [...configured, ...removed],
    healthy_count: configured.filter((row) => row.is_healthy).length,
    askable_count: configured.filter((row) => row.can_be_asked).length,
    total_count: configured.length,
    summary: {
      total_models: new Set(configured.flatMap((row) => row.models)).size,
      total_requests: sum(configured.map((row) => row.total_requests)),
      total_failures: sum(configured.map((row) => row.failed_requests)),
      average_response_time_ms: times.length === 0 ? null : Math.round(sum(times) / times.length),
    },
  };
}

interface Facts {
  health: HealthState;
  available: boolean;
  askable: boolean;
  circuit: CircuitState;
  models: readonly string[];
  view: HealthView | undefined;
}

/** What is known by name belongs to whoever has the name now. */
const REMOVED: Facts = {
  health: "unknown",
  available: false,
  askable: false,
  circuit: "closed",
  models: [],
  view: undefined,
};

function toStatus(
  backend: Backend,
  counters: BackendCounters,
  drain: Drain | undefined,
  { health, available, askable, circuit, models, view }: Facts,
) {
  return {
    name: backend.name,
    url: displayUrl(backend),
    type: backend.kind.name,
    enabled: backend.enabled,
    /** `draining`: takes no new requests and finishes what it has. */
    phase: drain === undefined ? ("active" as const) : ("draining" as const),
    /** How long it may take for that yet. */
    drain_remaining_ms: drain === undefined ? null : Math.round(drain.remainingMs),
    is_healthy: available,
    can_be_asked: askable,
    state: health,
    circuit,
    consecutive_failures: view?.record.consecutiveFailures ?? 0,
    consecutive_successes: view?.record.consecutiveSuccesses ?? 0,
    last_check: view?.lastCheckAtMs === undefined ? null : new Date(view.lastCheckAtMs).toISOString(),
    last_error: counters.credentialError ?? view?.lastOutcome?.reason ?? null,
    response_time_ms: view?.lastOutcome === undefined ? null : Math.round(view.lastOutcome.latencyMs),
    models,
    weight: backend.weight,
    in_flight: counters.inFlight,
    total_requests: counters.totalRequests,
    failed_requests: counters.failedRequests,
  };
}

/** In words for clients. */
export function whyAway(view: HealthView | undefined): string {
  const state = view?.record.state ?? "unknown";
  if (state === "unknown") return "not checked yet";
  if (state === "warming_up") return "still loading";
  const reason = view?.lastOutcome?.reason;
  if (reason !== undefined) return withoutPaths(reason);
  return state === "ready" ? "not recognised yet" : "answers again, but not for long enough yet";
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
