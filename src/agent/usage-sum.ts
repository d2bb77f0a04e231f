// What all calls of models of a turn have used together.

import type { Usage } from "../generation/usage.ts";
import { compact } from "../lib/json.ts";
import type { TurnEnd } from "./agent.ts";

export class UsageSum {
  #total: NonNullable<TurnEnd["usage"]> | undefined;

  add({ input, output }: Usage): void {
    const sum = this.#total;
    this.#total = {
      input: (sum?.input ?? 0) + input.total,
      output: (sum?.output ?? 0) + output.total,
      ...compact({
        reasoning: added(sum?.reasoning, output.reasoning),
        cacheRead: added(sum?.cacheRead, input.cacheRead),
        cacheWrite: added(sum?.cacheWrite, input.cacheWrite),
      }),
    };
  }

  get total(): TurnEnd["usage"] {
    return this.#total;
  }
}

/** A count that only one side has stands for itself. */
function added(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined ? other : one + (other ?? 0);
}
