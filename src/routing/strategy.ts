// What a selection strategy is: it scores the backends that may be asked. Who is chosen by that, the router knows.

import type { BackendEntry } from "../backends/board.ts";
import type { StrategyName } from "../config/sections/routing.ts";
import type { PrefixChain } from "../kv-index/prefix-hash.ts";

export interface SelectionQuery {
  /** Requests with the same key should meet the same backend; only asked for by strategies that need it. */
  sessionKey(): string;
  random(): number;
  /** Clock milliseconds. */
  nowMs: number;
  /** The request has failed elsewhere: this is not its first choice. */
  isRetry: boolean;
  /** Whether a backend has a slot for the request; left out: requests do not wait for slots. */
  hasRoom?: ((backendName: string) => boolean) | undefined;
  /** The hashes of the prompt's prefixes as the backend gets it; undefined for one that is shorter than a block. */
  prefixAt?: ((backendName: string) => PrefixChain | undefined) | undefined;
}

/** One choice: its candidates, and the strategy's scores and objections. */
export interface Ranking {
  readonly candidates: readonly BackendEntry[];
  /** The places in that list of those who may be asked, in its order; never empty. */
  readonly places: readonly number[];
  /** Index is the place; a backend that may not be asked has none. */
  readonly scores: (number | undefined)[];
  /** By place: why a backend with a score is only chosen when no other is left, e.g. "over_share". */
  readonly objections: (string | undefined)[];
}

/** Its words about itself are read after score(): a strategy that leaves a choice to another gives that one's. */
export interface SelectionStrategy {
  /** The strategy that decides, where it is not always the one of the configuration. */
  readonly decidedBy?: StrategyName | undefined;
  /** The meaning of its scores, for the reader of a request's story. */
  readonly scoreMeans: string;
  readonly best: "highest" | "lowest";
  /** Of equally good ones one is drawn; else the first in the order of the configuration is chosen. */
  readonly drawsTies?: boolean;
  /**
   * Scores everyone in `places`, and names objections. Moves nothing: a choice that is not used has no effect. The array
   * of candidates is the same object while the board is the same, so that a strategy may keep what it derived from it in
   * a WeakMap.
   */
  score(ranking: Ranking, query: SelectionQuery): void;
  /** The choice is used: called before anything else is chosen. */
  used?(ranking: Ranking, query: SelectionQuery, chosen: number): void;
}

/** The weight of the backend; a standby counts as 1 once it is asked at all. */
export function shareOf({ backend }: BackendEntry): number {
  return Math.max(backend.weight, 1);
}

export function sumOfShares({ candidates, places }: Ranking): number {
  let sum = 0;
  for (const place of places) sum += shareOf(candidates[place] as BackendEntry);
  return sum;
}
