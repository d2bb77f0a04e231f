// What a selection strategy is: it chooses one backend among those that may serve a request.

import type { BackendEntry } from "../backends/board.ts";

export interface SelectionQuery {
  /** Requests with the same key should meet the same backend; only asked for by strategies that need it. */
  sessionKey(): string;
  random(): number;
  /** Clock milliseconds. */
  nowMs: number;
}

export interface SelectionStrategy {
  /**
   * Chooses an entry that `allowed` accepts, or undefined when none is left. The candidates array is the same object
   * while the board is the same, so that a strategy may keep what it derived from it in a WeakMap.
   */
  select(
    candidates: readonly BackendEntry[],
    allowed: (entry: BackendEntry) => boolean,
    query: SelectionQuery,
  ): BackendEntry | undefined;
}
