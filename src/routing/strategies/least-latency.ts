// LeastLatency: the backend expected to answer first, from its average time to the first byte and its open requests.

import type { BackendEntry } from "../../backends/board.ts";
import type { SelectionStrategy } from "../strategy.ts";

export function leastLatency(): SelectionStrategy {
  return {
    select(candidates, allowed, { random }) {
      let best: BackendEntry | undefined;
      let bestScore = Number.POSITIVE_INFINITY;
      let ties = 0;
      for (const entry of candidates) {
        if (!allowed(entry)) continue;
        const { latencyMs, inFlight } = entry.counters;
        // A backend without a measurement is tried first; open requests count, so that the fastest is not drowned.
        const score = (latencyMs ?? 0) * (inFlight + 1) + inFlight * 1e-6;
        if (score < bestScore) {
          best = entry;
          bestScore = score;
          ties = 1;
        } else if (score === bestScore && random() * ++ties < 1) {
          best = entry;
        }
      }
      return best;
    },
  };
}
