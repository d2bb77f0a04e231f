// LeastLatency: the backend expected to answer first, from its average time to the first byte and its open requests.

import type { BackendEntry } from "../../backends/board.ts";
import type { SelectionStrategy } from "../strategy.ts";

/** After this time a measurement counts half, so that a backend that was slow once is tried again. */
const HALF_LIFE_MS = 60_000;
/** What a backend without a measurement counts as while its first requests are open. */
const UNKNOWN_LATENCY_MS = 1_000;

export function leastLatency(): SelectionStrategy {
  return {
    select(candidates, allowed, { random, nowMs }) {
      let best: BackendEntry | undefined;
      let bestScore = Number.POSITIVE_INFINITY;
      let ties = 0;
      for (const entry of candidates) {
        if (!allowed(entry)) continue;
        const score = expectedLatency(entry, nowMs);
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

/** Open requests count, so that the fastest is not drowned; a backend that was never measured is tried first. */
function expectedLatency({ counters }: BackendEntry, nowMs: number): number {
  const { latencyMs, latencyAtMs, inFlight } = counters;
  if (latencyMs === undefined) return UNKNOWN_LATENCY_MS * inFlight;
  return latencyMs * 2 ** (-(nowMs - latencyAtMs) / HALF_LIFE_MS) * (inFlight + 1);
}
