// LeastLatency: the backend expected to answer first, from its average time to the first byte and its open requests.

import { openRequests, UNKNOWN_LATENCY_MS } from "../../backends/backend.ts";
import type { BackendEntry } from "../../backends/board.ts";
import type { SelectionStrategy } from "../strategy.ts";

/** After this time a measurement counts half, so that a backend that was slow once is tried again. */
const HALF_LIFE_MS = 60_000;

export function leastLatency(): SelectionStrategy {
  return {
    scoreMeans: "expected milliseconds to the first byte; the lowest is chosen",
    best: "lowest",
    drawsTies: true,
    score({ candidates, places, scores }, { nowMs }) {
      for (const place of places) scores[place] = expectedLatency(candidates[place] as BackendEntry, nowMs);
    },
  };
}

function expectedLatency({ counters }: BackendEntry, nowMs: number): number {
  const { expectedMs, latencyAtMs } = counters;
  const open = openRequests(counters);
  if (expectedMs === undefined) return UNKNOWN_LATENCY_MS * open;
  return expectedMs * 2 ** (-(nowMs - latencyAtMs) / HALF_LIFE_MS) * (open + 1);
}
