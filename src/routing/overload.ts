// The bound on the load of one backend that stands above every score: who has more than its share is passed over while
// another is not.

import type { BackendEntry } from "../backends/board.ts";
import { type Ranking, shareOf, sumOfShares } from "./strategy.ts";

/** So many requests may stay together, however little there is to do. */
const ALWAYS_TOGETHER = 4;

/** How many times its share of the open requests a backend may have, where nobody has set it. */
export const LOAD_FACTOR = 1.25;

/** Objects to those that would have more than `factor` times their share with one more request. */
export function objectToOverload(ranking: Ranking, factor: number): void {
  const { candidates, places, objections } = ranking;
  const shares = sumOfShares(ranking);
  let open = 1;
  for (const place of places) open += (candidates[place] as BackendEntry).counters.inFlight;
  for (const place of places) {
    const entry = candidates[place] as BackendEntry;
    const bound = Math.max(ALWAYS_TOGETHER, Math.ceil((factor * open * shareOf(entry)) / shares));
    if (entry.counters.inFlight >= bound) objections[place] = "over_share";
  }
}
