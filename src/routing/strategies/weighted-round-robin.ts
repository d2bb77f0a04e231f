// WeightedRoundRobin: turns in proportion to weight, spread evenly (the "smooth" form: 3:1 gives a a b a, not a a a b).
// With every turn everyone who is allowed earns its weight; the richest is chosen and pays the sum of what was earned.

import type { BackendEntry } from "../../backends/board.ts";
import { type SelectionStrategy, shareOf, sumOfShares } from "../strategy.ts";
import { createTurns } from "./turns.ts";

export function weightedRoundRobin(): SelectionStrategy {
  const credits = createTurns((candidates) => candidates.map(() => 0));
  return {
    scoreMeans: "turns that it is owed by its weight; the highest is chosen",
    best: "highest",
    score(ranking, query) {
      const { candidates, places, scores } = ranking;
      const credit = credits(candidates, query);
      const earned = sumOfShares(ranking);
      for (const place of places)
        scores[place] = ((credit[place] as number) + shareOf(candidates[place] as BackendEntry)) / earned;
    },
    used(ranking, query, chosen) {
      const { candidates, places } = ranking;
      const credit = credits(candidates, query);
      for (const place of places)
        credit[place] = (credit[place] as number) + shareOf(candidates[place] as BackendEntry);
      credit[chosen] = (credit[chosen] as number) - sumOfShares(ranking);
    },
  };
}
