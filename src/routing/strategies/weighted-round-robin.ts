// WeightedRoundRobin: turns in proportion to weight, spread evenly (the "smooth" form: 3:1 gives a a b a, not a a a b).
// With every turn everyone who is allowed earns its weight; the richest is chosen and pays the sum of what was earned.

import type { BackendEntry } from "../../backends/board.ts";
import type { SelectionStrategy } from "../strategy.ts";
import { createTurns } from "./turns.ts";

export function weightedRoundRobin(): SelectionStrategy {
  const credits = createTurns((candidates) => candidates.map(() => 0));
  return {
    scoreMeans: "turns that it is owed by its weight; the highest is chosen",
    choose(candidates, allowed, query, tell) {
      const credit = credits(candidates, query);
      let chosen = -1;
      let highest = Number.NEGATIVE_INFINITY;
      let earned = 0;
      for (let place = 0; place < candidates.length; place++) {
        const entry = candidates[place] as BackendEntry;
        if (!allowed(entry)) continue;
        const weight = weightOf(entry);
        earned += weight;
        const owed = (credit[place] as number) + weight;
        if (owed > highest) {
          chosen = place;
          highest = owed;
        }
      }
      if (tell !== undefined) {
        for (let place = 0; place < candidates.length; place++) {
          const entry = candidates[place] as BackendEntry;
          if (allowed(entry)) tell(place, ((credit[place] as number) + weightOf(entry)) / earned);
        }
      }
      return chosen;
    },
    used(candidates, allowed, query, chosen) {
      const credit = credits(candidates, query);
      let earned = 0;
      for (let place = 0; place < candidates.length; place++) {
        const entry = candidates[place] as BackendEntry;
        // Being used may have closed the door behind the chosen one.
        if (place !== chosen && !allowed(entry)) continue;
        const weight = weightOf(entry);
        earned += weight;
        credit[place] = (credit[place] as number) + weight;
      }
      credit[chosen] = (credit[chosen] as number) - earned;
    },
  };
}

function weightOf({ backend }: BackendEntry): number {
  return Math.max(backend.weight, 1);
}
