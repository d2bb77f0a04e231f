// RoundRobin: each candidate in turn, per model.

import type { SelectionStrategy } from "../strategy.ts";
import { createTurns } from "./turns.ts";

export function roundRobin(): SelectionStrategy {
  // A random start keeps the first backend from getting the first request of every model and every new board.
  const turns = createTurns((candidates, { random }) => ({ next: Math.floor(random() * candidates.length) }));
  return {
    scoreMeans: "turns until its own; the lowest is chosen",
    best: "lowest",
    score({ candidates, places, scores }, query) {
      const { next } = turns(candidates, query);
      const count = places.length;
      let first = 0;
      while (first < count && (places[first] as number) < next) first++;
      for (let wait = 0; wait < count; wait++) scores[places[(first + wait) % count] as number] = wait;
    },
    used({ candidates }, query, chosen) {
      turns(candidates, query).next = (chosen + 1) % candidates.length;
    },
  };
}
