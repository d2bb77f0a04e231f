// RoundRobin: each candidate in turn, per model.

import type { BackendEntry } from "../../backends/board.ts";
import type { SelectionStrategy } from "../strategy.ts";

export function roundRobin(): SelectionStrategy {
  const positions = new WeakMap<readonly BackendEntry[], { next: number }>();
  return {
    select(candidates, allowed, { random }) {
      const count = candidates.length;
      let position = positions.get(candidates);
      if (position === undefined) {
        // A random start keeps the first backend from getting the first request of every model and every new board.
        position = { next: Math.floor(random() * count) };
        positions.set(candidates, position);
      }
      for (let step = 0; step < count; step++) {
        const entry = candidates[(position.next + step) % count] as BackendEntry;
        if (!allowed(entry)) continue;
        position.next = (position.next + step + 1) % count;
        return entry;
      }
      return undefined;
    },
  };
}
