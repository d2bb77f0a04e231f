// LeastLatency: the backend expected to answer first, from its average time to the first byte and its open requests.

import type { BackendEntry } from "../../backends/board.ts";
import type { SelectionStrategy } from "../strategy.ts";

/** After this time a measurement counts half, so that a backend that was slow once is tried again. */
const HALF_LIFE_MS = 60_000;
/** What a backend without a measurement counts as while its first requests are open. */
const UNKNOWN_LATENCY_MS = 1_000;

export function leastLatency(): SelectionStrategy {
  return {
    scoreMeans: "expected milliseconds to the first byte; the lowest is chosen",
    choose(candidates, allowed, { random, nowMs }, tell) {
      let chosen = -1;
      let lowest = Number.POSITIVE_INFINITY;
      let ties = 0;
      for (let place = 0; place < candidates.length; place++) {
        const entry = candidates[place] as BackendEntry;
        if (!allowed(entry)) continue;
        const score = expectedLatency(entry, nowMs);
        tell?.(place, score);
        if (score < lowest) {
          chosen = place;
          lowest = score;
          ties = 1;
        } else if (score === lowest && random() * ++ties < 1) {
          chosen = place;
        }
      }
      return chosen;
    },
  };
}

/** Open requests count, so that the fastest is not drowned; a backend that was never measured is tried first. */
function expectedLatency({ counters }: BackendEntry, nowMs: number): number {
  const { latencyMs, latencyAtMs, inFlight } = counters;
  if (latencyMs === undefined) return UNKNOWN_LATENCY_MS * inFlight;
  return latencyMs * 2 ** (-(nowMs - latencyAtMs) / HALF_LIFE_MS) * (inFlight + 1);
}
