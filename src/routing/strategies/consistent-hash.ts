// ConsistentHash: the same session meets the same backend, and a backend that leaves moves only its own sessions.
// Weighted rendezvous hashing: every backend draws a lot for the session, the best lot wins. A lot depends on nothing
// but the session and its own backend, so that no other backend's coming or going changes it. A backend that already has
// more than its share of the open requests is passed over, so that one busy session cannot drown it.

import type { BackendEntry } from "../../backends/board.ts";
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
        seed = Uint32Array.from(candidates, (entry) => Bun.hash.xxHash32(entry.backend.name));
        seeds.set(candidates, seed);
      }
      const session = Bun.hash.xxHash32(keyOf(query, candidates));
      for (const place of places) {
        scores[place] = drawLot(session, seed[place] as number, shareOf(candidates[place] as BackendEntry));
      }
      objectToOverload(ranking, loadFactor, countsNow);
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
