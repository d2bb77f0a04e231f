// What a selection strategy is: it chooses one backend among those that may serve a request, and says what it went by.

import type { BackendEntry } from "../backends/board.ts";

export interface SelectionQuery {
  /** Requests with the same key should meet the same backend; only asked for by strategies that need it. */
  sessionKey(): string;
  random(): number;
  /** Clock milliseconds. */
  nowMs: number;
  /** The request has failed elsewhere: this is not its first choice. */
  isRetry: boolean;
}

/** Takes the score of a candidate, by its place in the list. */
export type TellScore = (place: number, score: number, isOverShare?: boolean) => void;

export interface SelectionStrategy {
  /** What its scores say, for the reader of a request's story. */
  readonly scoreMeans: string;
  /**
   * The place of an entry that `allowed` accepts, or -1 when none is left. Moves nothing: a choice that is not used has
   * no effect. The candidates array is the same object while the board is the same, so that a strategy may keep what it
   * derived from it in a WeakMap. `tell` is given where somebody reads it: it gets the score of everyone who is allowed.
   */
  choose(
    candidates: readonly BackendEntry[],
    allowed: (entry: BackendEntry) => boolean,
    query: SelectionQuery,
    tell?: TellScore,
  ): number;
  /** The choice is used: called with what it was chosen from, before anything else is chosen. */
  used?(
    candidates: readonly BackendEntry[],
    allowed: (entry: BackendEntry) => boolean,
    query: SelectionQuery,
    chosen: number,
  ): void;
}
