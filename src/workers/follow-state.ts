// What the workers have to know of backends and circuits, and when it differs from what they have.

import type { BackendEntry } from "../backends/board.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { CircuitView, State } from "./messages.ts";
import type { Slots } from "./slots.ts";

/** Times of the next look that are as good as the same. */
const SAME_LOOK_MS = 500;

interface SentState {
  entry: BackendEntry;
  why: string;
  lookAtMs: number;
  circuit: CircuitView;
}

export function createStateSource(fleet: Fleet, slots: Slots, now: () => number) {
  let told: readonly SentState[] = [];

  function present(): { state: State; telling: SentState[] } {
    const nowMs = now();
    const facts: State["facts"][number][] = [];
    const telling: SentState[] = [];
    for (const { entry, backend, health, held, models, intakes, counters, absence } of fleet.facts()) {
      const { name } = backend;
      const { why = "", nextLookMs } = absence ?? {};
      facts.push({
        name,
        slot: slots.slotOf(counters),
        health,
        held,
        models,
        intakes: [...intakes],
        kind: backend.kind.name,
        why,
        nextLookMs,
      });
      const lookAtMs = nextLookMs === undefined ? 0 : Math.round((nowMs + nextLookMs) / SAME_LOOK_MS);
      telling.push({ entry, why, lookAtMs, circuit: { name, ...fleet.circuits.view(name) } });
    }
    return { state: { facts, circuits: telling.map(({ circuit }) => circuit) }, telling };
  }

  return {
    /** All of it. */
    present: (): State => present().state,
    /** Undefined when they know it already. */
    news(): State | undefined {
      const { state, telling } = present();
      if (isSame(telling, told)) return undefined;
      told = telling;
      slots.retain(new Set([...fleet.board.entries.map(({ counters }) => counters), ...fleet.draining]));
      return state;
    },
  };
}

function isSame(left: readonly SentState[], right: readonly SentState[]): boolean {
  return (
    left.length === right.length &&
    left.every((each, index) => {
      const other = right[index] as SentState;
      return (
        each.entry === other.entry &&
        each.why === other.why &&
        each.lookAtMs === other.lookAtMs &&
        isSameCircuit(each.circuit, other.circuit)
      );
    })
  );
}

/** How long it stays open is sent once: the worker counts down itself. */
function isSameCircuit({ opensInMs: _, ...left }: CircuitView, { opensInMs: __, ...right }: CircuitView): boolean {
  return Bun.deepEquals(left, right);
}
