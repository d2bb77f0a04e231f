// WeightedRoundRobin: turns in proportion to weight, spread evenly (the "smooth" form: 3:1 gives a a b a, not a a a b).

import type { BackendEntry } from "../../backends/board.ts";
import type { SelectionStrategy } from "../strategy.ts";

export function weightedRoundRobin(): SelectionStrategy {
  const credits = new WeakMap<readonly BackendEntry[], number[]>();
  return {
    select(candidates, allowed) {
      let credit = credits.get(candidates);
      if (credit === undefined) {
        credit = candidates.map(() => 0);
        credits.set(candidates, credit);
      }
      // Everyone earns its weight, the richest is chosen and pays the sum of what was earned.
      let chosen = -1;
      let earned = 0;
      for (let index = 0; index < candidates.length; index++) {
        const entry = candidates[index] as BackendEntry;
        if (!allowed(entry)) continue;
        const weight = Math.max(entry.backend.weight, 1);
        earned += weight;
        credit[index] = (credit[index] as number) + weight;
        if (chosen < 0 || (credit[index] as number) > (credit[chosen] as number)) chosen = index;
      }
      if (chosen < 0) return undefined;
      credit[chosen] = (credit[chosen] as number) - earned;
      return candidates[chosen];
    },
  };
}
