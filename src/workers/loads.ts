// What each worker knows of the others' requests at backends, so that they choose as one process would.

import type { BackendCounters } from "../backends/backend.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { Load } from "./messages.ts";
import type { Slots } from "./slots.ts";

/** A worker that hears of the loads of others. */
interface Hearer {
  desk: { inFlightAt(counters: BackendCounters): number };
  tell(name: "loads", loads: Load[]): void;
}

interface SentLoads {
  inFlight: number;
  latencyAtMs: number;
}

export function createLoadsTeller(fleet: Pick<Fleet, "board">, slots: Slots, now: () => number) {
  const told = new WeakMap<Hearer, WeakMap<BackendCounters, SentLoads>>();

  function newsFor(hearer: Hearer, known: WeakMap<BackendCounters, SentLoads>): Load[] {
    const loads: Load[] = [];
    for (const { counters } of fleet.board.entries) {
      const { latencyMs, expectedMs, latencyAtMs } = counters;
      const inFlight = counters.inFlight - hearer.desk.inFlightAt(counters);
      const before = known.get(counters);
      if ((before?.inFlight ?? 0) === inFlight && (before?.latencyAtMs ?? 0) === latencyAtMs) continue;
      known.set(counters, { inFlight, latencyAtMs });
      const latencyAgeMs = now() - latencyAtMs;
      loads.push({ slot: slots.slotOf(counters), inFlight, latencyMs, expectedMs, latencyAgeMs });
    }
    return loads;
  }

  return (hearers: Iterable<Hearer>): void => {
    for (const hearer of hearers) {
      const known = told.get(hearer) ?? new WeakMap<BackendCounters, SentLoads>();
      told.set(hearer, known);
      const loads = newsFor(hearer, known);
      if (loads.length > 0) hearer.tell("loads", loads);
    }
  };
}
