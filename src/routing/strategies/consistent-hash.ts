// ConsistentHash: the same session meets the same backend, and a backend that leaves moves only its own sessions.
// Weighted rendezvous hashing: every backend draws a lot for the session, the best lot wins. A lot depends on nothing
// but the session and its own backend, so that no other backend's coming or going changes it.

import type { BackendEntry } from "../../backends/board.ts";
import type { SelectionStrategy } from "../strategy.ts";

export function consistentHash(): SelectionStrategy {
  const seeds = new WeakMap<readonly BackendEntry[], Uint32Array>();
  return {
    select(candidates, allowed, query) {
      let seed = seeds.get(candidates);
      if (seed === undefined) {
        seed = Uint32Array.from(candidates, (entry) => Bun.hash.xxHash32(entry.backend.name));
        seeds.set(candidates, seed);
      }
      const session = Bun.hash.xxHash32(query.sessionKey());
      let best: BackendEntry | undefined;
      let bestLot = Number.NEGATIVE_INFINITY;
      for (let index = 0; index < candidates.length; index++) {
        const entry = candidates[index] as BackendEntry;
        if (!allowed(entry)) continue;
        const lot = drawLot(session, seed[index] as number, Math.max(entry.backend.weight, 1));
        if (lot > bestLot) {
          best = entry;
          bestLot = lot;
        }
      }
      return best;
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
