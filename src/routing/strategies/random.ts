// Random: every candidate with the same chance.

import type { BackendEntry } from "../../backends/board.ts";
import type { SelectionStrategy } from "../strategy.ts";

export function randomChoice(): SelectionStrategy {
  return {
    scoreMeans: "its chance; one is drawn",
    choose(candidates, allowed, { random }, tell) {
      let chosen = -1;
      let seen = 0;
      for (let place = 0; place < candidates.length; place++) {
        if (allowed(candidates[place] as BackendEntry) && random() * ++seen < 1) chosen = place;
      }
      if (tell !== undefined) {
        for (let place = 0; place < candidates.length; place++) {
          if (allowed(candidates[place] as BackendEntry)) tell(place, 1 / seen);
        }
      }
      return chosen;
    },
  };
}
