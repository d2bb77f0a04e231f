// ConsistentHash: the same session meets the same backend, and a backend that leaves moves only its own sessions.
// The backend with the session's highest lot (lib/lots.ts) is chosen. A backend that already has more than its share of the
// open requests is passed over, so that one busy session cannot drown it.

import type { BackendEntry } from "../../backends/board.ts";
import { drawLot, lotSeed } from "../../lib/lots.ts";
import { objectToOverload } from "../overload.ts";
import { type SelectionQuery, type SelectionStrategy, shareOf } from "../strategy.ts";

/**
 * `loadFactor`: how many times its share of the open requests a backend may have; Infinity = no bound. `keyOf`: what
 * requests of one session have in common.
 */
export function consistentHash(
  loadFactor: number = Number.POSITIVE_INFINITY,
  keyOf: (query: SelectionQuery, candidates: readonly BackendEntry[]) => string = (query) => query.sessionKey(),
  countsNow = false,
): SelectionStrategy {
  const seeds = new WeakMap<readonly BackendEntry[], Uint32Array>();
  return {
    scoreMeans: "lot that the session draws for it; the highest is chosen that has not more than its share",
    best: "highest",
    score(ranking, query) {
      const { candidates, places, scores } = ranking;
      let seed = seeds.get(candidates);
      if (seed === undefined) {
        seed = Uint32Array.from(candidates, (entry) => lotSeed(entry.backend.name));
        seeds.set(candidates, seed);
      }
      const session = lotSeed(keyOf(query, candidates));
      for (const place of places) {
        scores[place] = drawLot(session, seed[place] as number, shareOf(candidates[place] as BackendEntry));
      }
      objectToOverload(ranking, loadFactor, countsNow);
    },
  };
}
