// One choice among the backends that may be asked: the first by the scores that a strategy gives them.

import type { BackendEntry } from "../backends/board.ts";
import type { Ranking, SelectionQuery, SelectionStrategy } from "./strategy.ts";

/** Used for one choice after another, so that a request allocates none. */
export class Choice implements Ranking {
  candidates: readonly BackendEntry[] = [];
  readonly places: number[] = [];
  readonly scores: (number | undefined)[] = [];
  readonly objections: (string | undefined)[] = [];

  begin(candidates: readonly BackendEntry[]): void {
    this.candidates = candidates;
    this.places.length = 0;
    for (let place = 0; place < candidates.length; place++) {
      this.scores[place] = undefined;
      this.objections[place] = undefined;
    }
  }

  /** The place of the first; -1 when none may be asked. */
  choose(strategy: SelectionStrategy, query: SelectionQuery): number {
    if (this.places.length === 0) return -1;
    strategy.score(this, query);
    const sign = strategy.best === "highest" ? 1 : -1;
    let chosen = -1;
    let best = Number.NEGATIVE_INFINITY;
    let isObjected = true;
    let ties = 0;
    for (const place of this.places) {
      const score = sign * (this.scores[place] as number);
      const objected = this.objections[place] !== undefined;
      if (chosen < 0 || (objected === isObjected ? score > best : isObjected)) {
        chosen = place;
        best = score;
        isObjected = objected;
        ties = 1;
      } else if (strategy.drawsTies && objected === isObjected && score === best && query.random() * ++ties < 1) {
        chosen = place;
      }
    }
    return chosen;
  }
}
