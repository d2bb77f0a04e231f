// What is known of backends: all of it for the admin API, and in words for clients why one is away.

import type { Backend, BackendCounters } from "../backends/backend.ts";
import type { BackendBoard, HealthState } from "../backends/board.ts";
import type { Drain } from "../backends/drains.ts";
import type { HealthChecker, HealthView } from "../health/checker.ts";
import { withoutPaths } from "../health/probe.ts";
import type { ModelCatalog } from "../models/catalog.ts";
import type { CircuitState } from "../routing/circuit-breaker.ts";
import type { Circuits } from "../routing/circuits.ts";
import { canBeAsked } from "./can-be-asked.ts";

/** Everything that is known of one backend. */
export interface BackendState {
  backend: Backend;
  counters: BackendCounters;
  /** Undefined while it takes requests. */
  drain: Drain | undefined;
  health: HealthState;
  available: boolean;
  /** Enabled, healthy or not checked yet, and not held back by its circuit. */
  askable: boolean;
  circuit: CircuitState;
  /** Milliseconds since its circuit was closed last. */
  circuitTroubledMs: number | undefined;
  models: readonly string[];
  /** Undefined if it is not checked. */
  view: HealthView | undefined;
}

/** Those that are configured, in their order, and those that were removed and still finish requests. */
export interface BackendStates {
  configured: readonly BackendState[];
  removed: readonly BackendState[];
}

interface StatusSources {
  drains: readonly Drain[];
  checker: HealthChecker;
  catalog: ModelCatalog;
  circuits: Circuits;
}

export function statesOf(board: BackendBoard, sources: StatusSources): BackendStates {
  const { checker, catalog, circuits } = sources;
  const drains = new Map(sources.drains.map((drain) => [drain.counters, drain]));
  const configured = board.entries.map((entry): BackendState => {
    const { backend, counters, health, available } = entry;
    const { name } = backend;
    const drain = drains.get(counters);
    drains.delete(counters);
    const circuit = circuits.state(name);
    const circuitTroubledMs = circuit === "closed" ? undefined : circuits.troubledForMs(name);
    const models = catalog.list(name).map(({ id }) => id);
    const askable = canBeAsked(entry, circuits);
    const view = checker.view(name);
    return { backend, counters, drain, health, available, askable, circuit, circuitTroubledMs, models, view };
  });
  return { configured, removed: [...drains.values()].map(removedState) };
}

/** Facts known by name are left out: they belong to the backend that has the name now. */
function removedState(drain: Drain): BackendState {
  const { backend, counters } = drain;
  const unknown = { health: "unknown", available: false, askable: false, circuit: "closed" } as const;
  return { backend, counters, drain, ...unknown, circuitTroubledMs: undefined, models: [], view: undefined };
}

/** The reason in words for clients. */
export function whyAway(view: HealthView | undefined): string {
  const state = view?.record.state ?? "unknown";
  if (state === "unknown") return "not checked yet";
  if (state === "warming_up") return "still loading";
  const reason = view?.lastOutcome?.reason;
  if (reason !== undefined) return withoutPaths(reason);
  return state === "ready" ? "not recognised yet" : "answers again, but not for long enough yet";
}
