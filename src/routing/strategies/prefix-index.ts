// The KV cache index over the configured strategy: requests go to a backend that has enough of their prompt in its cache. Its
// score says how much of the prompt it has, how much room, and how well it does.

import { openRequests } from "../../backends/backend.ts";
import type { BackendEntry } from "../../backends/board.ts";
import type { KvIndex } from "../../kv-index/kv-index.ts";
import type { PrefixChain } from "../../kv-index/prefix-hash.ts";
import { LOAD_FACTOR, objectToOverload } from "../overload.ts";
import type { Ranking, SelectionQuery, SelectionStrategy } from "../strategy.ts";

const SCORE_MEANS =
  "share of the prompt in its cache, its room and its health, weighted; the highest is chosen that has not more than its share";

type Index = Pick<
  KvIndex,
  "settings" | "look" | "rawOverlap" | "isClaimed" | "passed" | "tierMultiplier" | "health" | "counted"
>;

/** `configured` chooses when no backend has enough of the prompt. */
export function withPrefixIndex(index: Index, configured: SelectionStrategy): SelectionStrategy {
  /** Values of the present choice, by place. */
  const raw: number[] = [];
  const tiers: number[] = [];
  const claimed: boolean[] = [];
  let isLookedUp = false;
  let isHit = false;

  /** True if a backend has enough of the prompt. */
  function lookUp({ candidates, places }: Ranking, query: SelectionQuery): boolean {
    const { min_overlap_threshold: threshold } = index.settings.scoring;
    let seen: PrefixChain | undefined;
    let best = 0;
    for (const place of places) {
      const { name } = (candidates[place] as BackendEntry).backend;
      const chain = query.prefixAt?.(name);
      // Mostly the same for all: only a prompt of the gateway's own for one backend makes a difference.
      if (chain !== undefined && chain !== seen) index.look(chain);
      seen = chain ?? seen;
      raw[place] = chain === undefined ? 0 : index.rawOverlap(name);
      tiers[place] = chain === undefined ? 0 : index.tierMultiplier(name);
      claimed[place] = chain !== undefined && index.isClaimed(name);
      best = Math.max(best, raw[place] as number);
    }
    isLookedUp = seen !== undefined;
    return isLookedUp && best >= threshold;
  }

  function scoreByIndex(ranking: Ranking): void {
    const { candidates, places, scores } = ranking;
    const { overlap_weight, load_weight, health_weight } = index.settings.scoring;
    let most = 0;
    for (const place of places) most = Math.max(most, openRequests((candidates[place] as BackendEntry).counters));
    for (const place of places) {
      const { backend, counters } = candidates[place] as BackendEntry;
      const load = most === 0 ? 0 : openRequests(counters) / most;
      const overlap = (raw[place] as number) * (tiers[place] as number);
      scores[place] = overlap_weight * overlap + load_weight * (1 - load) + health_weight * index.health(backend.name);
    }
    objectToOverload(ranking, LOAD_FACTOR, true);
  }

  return {
    get decidedBy() {
      return isHit ? "PrefixAwareHash" : configured.decidedBy;
    },
    get scoreMeans() {
      return isHit ? SCORE_MEANS : configured.scoreMeans;
    },
    get best() {
      return isHit ? "highest" : configured.best;
    },
    get drawsTies() {
      return isHit || configured.drawsTies === true;
    },
    score(ranking, query) {
      isHit = lookUp(ranking, query);
      if (isHit) scoreByIndex(ranking);
      else configured.score(ranking, query);
    },
    used(ranking, query, chosen) {
      if (isLookedUp) {
        const { candidates, places } = ranking;
        index.counted(isHit ? 1 : 0, 1);
        for (const place of places) {
          const { name } = (candidates[place] as BackendEntry).backend;
          index.passed(name, places.length, isHit && place === chosen && claimed[place] === true);
        }
      }
      if (!isHit) configured.used?.(ranking, query, chosen);
    },
  };
}
