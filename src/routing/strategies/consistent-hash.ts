// ConsistentHash: the same session meets the same backend, and a backend that leaves moves only its own sessions.
// Weighted rendezvous hashing: every backend draws a lot for the session, the best lot wins. A lot depends on nothing
// but the session and its own backend, so that no other backend's coming or going changes it. A backend that already has
// more than its share of the open requests is passed over, so that one busy session cannot drown it.

import type { BackendEntry } from "../../backends/board.ts";
import { type SelectionStrategy, shareOf, sumOfShares } from "../strategy.ts";

/** So many requests of one session stay together, however little there is to do. */
const ALWAYS_TOGETHER = 4;

/** `loadFactor`: how many times its share of the open requests a backend may have; Infinity = no bound. */
export function consistentHash(loadFactor: number = Number.POSITIVE_INFINITY): SelectionStrategy {
  const seeds = new WeakMap<readonly BackendEntry[], Uint32Array>();
  return {
    scoreMeans: "lot that the session draws for it; the highest is chosen that has not more than its share",
    best: "highest",
    score(ranking, query) {
      const { candidates, places, scores, objections } = ranking;
      let seed = seeds.get(candidates);
      if (seed === undefined) {
        seed = Uint32Array.from(candidates, (entry) => Bun.hash.xxHash32(entry.backend.name));
        seeds.set(candidates, seed);
      }
      const session = Bun.hash.xxHash32(query.sessionKey());
      const shares = sumOfShares(ranking);
      let open = 1;
      for (const place of places) open += (candidates[place] as BackendEntry).counters.inFlight;
      for (const place of places) {
        const entry = candidates[place] as BackendEntry;
        const share = shareOf(entry);
        scores[place] = drawLot(session, seed[place] as number, share);
        const bound = Math.max(ALWAYS_TOGETHER, Math.ceil((loadFactor * open * share) / shares));
        if (entry.counters.inFlight >= bound) objections[place] = "over_share";
      }
    },
  };
}

/** Higher is better; over all sessions each backend wins in proportion to its weight. */
function drawLot(session: number, seed: number, weight: number): number {
  const uniform = (mix(session ^ Math.imul(seed, 0x9e3779b1)) + 0.5) / 0x1_0000_0000;
  return weight / -Math.log(uniform);
}

/** Spreads the bits of a 32-bit number evenly. */
function mix(value: number): number {
  let bits = value;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
