// RoundRobin: each candidate in turn, per model.

import type { BackendEntry } from "../../backends/board.ts";
import type { SelectionStrategy } from "../strategy.ts";
import { createTurns } from "./turns.ts";

export function roundRobin(): SelectionStrategy {
  // A random start keeps the first backend from getting the first request of every model and every new board.
  const turns = createTurns((candidates, { random }) => ({ next: Math.floor(random() * candidates.length) }));
  return {
    scoreMeans: "turns until its own; the lowest is chosen",
    choose(candidates, allowed, query, tell) {
      const count = candidates.length;
      const { next } = turns(candidates, query);
      let chosen = -1;
      let wait = 0;
      for (let step = 0; step < count; step++) {
        const place = (next + step) % count;
        if (!allowed(candidates[place] as BackendEntry)) continue;
        if (chosen < 0) chosen = place;
        if (tell === undefined) break;
        tell(place, wait++);
      }
      return chosen;
    },
    used(candidates, _allowed, query, chosen) {
      turns(candidates, query).next = (chosen + 1) % candidates.length;
    },
  };
}
