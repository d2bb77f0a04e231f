// Random: every candidate with the same chance.

import type { BackendEntry } from "../../backends/board.ts";
import type { SelectionStrategy } from "../strategy.ts";

export function randomChoice(): SelectionStrategy {
  return {
    select(candidates, allowed, { random }) {
      let chosen: BackendEntry | undefined;
      let seen = 0;
      for (const entry of candidates) {
        if (allowed(entry) && random() * ++seen < 1) chosen = entry;
      }
      return chosen;
    },
  };
}
