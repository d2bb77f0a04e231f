// How long the answers of each model were lately: what is expected of the next one.

import { getOrMake } from "../lib/get-or-make.ts";

const ANSWERS = 100;
const MAX_MODELS = 1_000;

export type AnswerAverages = ReturnType<typeof createAnswerAverages>;

/** How many tokens the last answers of each model had. */
export function createAnswerAverages() {
  const models = new Map<string, { last: Uint32Array; count: number; sum: number }>();
  return {
    add(model: string, tokens: number): void {
      if (models.size >= MAX_MODELS && !models.has(model)) models.delete(models.keys().next().value as string);
      const row = getOrMake(models, model, () => ({ last: new Uint32Array(ANSWERS), count: 0, sum: 0 }));
      const place = row.count++ % ANSWERS;
      row.sum += tokens - (row.last[place] as number);
      row.last[place] = tokens;
    },
    /** Undefined before the first one. */
    of(model: string): number | undefined {
      const row = models.get(model);
      return row && Math.ceil(row.sum / Math.min(row.count, ANSWERS));
    },
  };
}
