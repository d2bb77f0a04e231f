// The bound on the load of one backend that stands above every score: who has more than its share is passed over while
// another is not.

import { openRequests } from "../backends/backend.ts";
import type { BackendEntry } from "../backends/board.ts";
import { type Ranking, shareOf, sumOfShares } from "./strategy.ts";

/** So many requests may stay together, however little there is to do. */
const ALWAYS_TOGETHER = 4;

/** How many times its share of the open requests a backend may have, where it is not configured. */
export const LOAD_FACTOR = 1.25;

/**
 * Objects to those that would have more than `factor` times their share with one more request.
 * @param countsNow - also to those that have more than that now, where rounding would let one more pass
 */
export function objectToOverload(ranking: Ranking, factor: number, countsNow = false): void {
  const { candidates, places, objections } = ranking;
  const shares = sumOfShares(ranking);
  let open = 1;
  for (const place of places) open += openRequests((candidates[place] as BackendEntry).counters);
  for (const place of places) {
    const entry = candidates[place] as BackendEntry;
    const inFlight = openRequests(entry.counters);
    const share = (factor * shareOf(entry)) / shares;
    const isOver = countsNow && inFlight > Math.max(ALWAYS_TOGETHER, share * (open - 1));
    if (isOver || inFlight >= Math.max(ALWAYS_TOGETHER, Math.ceil(share * open))) objections[place] = "over_share";
  }
}
