// The gauges of backends.

import type { BackendEntry } from "../backends/board.ts";
import { INSTRUMENTS } from "../metrics/instruments.ts";
import type { MetricReading, MetricsRegistry } from "../metrics/registry.ts";
import { canBeAsked } from "./can-be-asked.ts";
import type { Fleet } from "./fleet.ts";

interface ShownBackend {
  board: { entries: readonly BackendEntry[] };
  circuits: Pick<Fleet["circuits"], "state" | "letsThrough">;
}

const HEALTH_STATES = ["unknown", "ready", "warming_up", "down", "unhealthy"] as const;
const CIRCUIT_STATES = ["closed", "open", "half_open"] as const;

export function addBackendGauges(registry: MetricsRegistry, fleet: ShownBackend): void {
  function* each(value: (entry: BackendEntry) => number | undefined): Generator<MetricReading> {
    for (const entry of fleet.board.entries) {
      const read = value(entry);
      if (read !== undefined) yield { labels: [entry.backend.name], value: read };
    }
  }
  function* perState(states: readonly string[], stateOf: (entry: BackendEntry) => string): Generator<MetricReading> {
    for (const entry of fleet.board.entries) {
      const current = stateOf(entry);
      for (const state of states) yield { labels: [entry.backend.name, state], value: state === current ? 1 : 0 };
    }
  }
  function* perKind(): Generator<MetricReading> {
    for (const entry of fleet.board.entries) {
      const { name, kind } = entry.backend;
      yield { labels: [name, kind.name], value: canBeAsked(entry, fleet.circuits) ? 1 : 0 };
    }
  }
  registry.read(INSTRUMENTS.backendUp, perKind);
  registry.read(INSTRUMENTS.backendHealth, () => perState(HEALTH_STATES, ({ health }) => health));
  registry.read(INSTRUMENTS.circuitState, () =>
    perState(CIRCUIT_STATES, ({ backend }) => fleet.circuits.state(backend.name)),
  );
  registry.read(INSTRUMENTS.backendInFlight, () => each(({ counters }) => counters.inFlight));
  registry.read(INSTRUMENTS.backendAttempts, () => each(({ counters }) => counters.totalRequests));
  registry.read(INSTRUMENTS.backendFailures, () => each(({ counters }) => counters.failedRequests));
  registry.read(INSTRUMENTS.backendLatency, () =>
    each(({ counters: { latencyMs } }) => (latencyMs === undefined ? undefined : latencyMs / 1000)),
  );
}
