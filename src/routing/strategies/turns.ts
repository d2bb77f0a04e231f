// Turns: what a strategy keeps for each list of candidates, once for first choices and once for those of retries.

import type { BackendEntry } from "../../backends/board.ts";
import type { SelectionQuery } from "../strategy.ts";

/**
 * A retry that took the next one's turn would leave the failing backend with the first choice of every request: of two
 * backends, the other one would have had its turn each time.
 */
export function createTurns<State>(begin: (candidates: readonly BackendEntry[], query: SelectionQuery) => State) {
  const ofFirstChoices = new WeakMap<readonly BackendEntry[], State>();
  const ofRetries = new WeakMap<readonly BackendEntry[], State>();
  return (candidates: readonly BackendEntry[], query: SelectionQuery): State => {
    const states = query.isRetry ? ofRetries : ofFirstChoices;
    let state = states.get(candidates);
    if (state === undefined) {
      state = begin(candidates, query);
      states.set(candidates, state);
    }
    return state;
  };
}
