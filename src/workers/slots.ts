// Numbers for the counters of backends, by which processes name them: a name may go on to another server.

import type { BackendCounters } from "../backends/backend.ts";

export type Slots = ReturnType<typeof createSlots>;

/** A worker may still tell of a backend that it has not heard of the end of. */
const GRACE_MS = 10_000;

export function createSlots(now: () => number) {
  const numbers = new WeakMap<BackendCounters, number>();
  const bySlot = new Map<number, BackendCounters>();
  /** Since when it is neither present nor has anything in flight. */
  const goneSince = new Map<number, number>();
  let last = 0;

  return {
    slotOf(counters: BackendCounters): number {
      const known = numbers.get(counters);
      if (known !== undefined) return known;
      numbers.set(counters, ++last);
      bySlot.set(last, counters);
      return last;
    },
    countersOf: (slot: number) => bySlot.get(slot),
    /** Forgets all that have nothing in flight, but these. */
    retain(present: ReadonlySet<BackendCounters>): void {
      for (const [slot, counters] of bySlot) {
        if (present.has(counters) || counters.inFlight > 0) {
          goneSince.delete(slot);
          continue;
        }
        const sinceMs = goneSince.get(slot) ?? now();
        goneSince.set(slot, sinceMs);
        if (now() - sinceMs < GRACE_MS) continue;
        goneSince.delete(slot);
        bySlot.delete(slot);
      }
    },
  };
}
