// Which target of a list a request gets: in turn by weight, or by the lot that its session draws.

import { drawLot, lotSeed } from "../lib/lots.ts";

interface Weighted {
  /** Its seed is made of it: another name is another target. */
  name: string;
  weight: number;
}

export interface Shares {
  /**
   * Smooth weighted round robin: of every run of as many requests as the weights add up to, each target gets exactly its weight, evenly
   * spread. Returns the place of the target.
   */
  inTurn(): number;
  /** The target of a session: the same as long as its own weight and the winner's stay. */
  ofSession(session: string, isOpen?: (place: number) => boolean): { place: number; lot: number } | undefined;
}

/** Targets of weight 0 get nothing, and at least one has a greater weight. */
export function createShares(owner: string, targets: readonly Weighted[]): Shares {
  const seeds = Uint32Array.from(targets, ({ name }) => lotSeed(`${owner}\n${name}`));
  const credits = new Float64Array(targets.length);
  const total = targets.reduce((sum, { weight }) => sum + weight, 0);
  return {
    inTurn() {
      let best = -1;
      for (let place = 0; place < targets.length; place++) {
        const { weight } = targets[place] as Weighted;
        if (weight === 0) continue;
        const credit = (credits[place] as number) + weight;
        credits[place] = credit;
        if (best < 0 || credit > (credits[best] as number)) best = place;
      }
      credits[best] = (credits[best] as number) - total;
      return best;
    },
    ofSession(session, isOpen) {
      const number = lotSeed(session);
      let best: { place: number; lot: number } | undefined;
      for (let place = 0; place < targets.length; place++) {
        const { weight } = targets[place] as Weighted;
        if (weight === 0 || isOpen?.(place) === false) continue;
        const lot = drawLot(number, seeds[place] as number, weight);
        if (best === undefined || lot > best.lot) best = { place, lot };
      }
      return best;
    },
  };
}
