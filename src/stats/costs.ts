// What the tokens cost, per key and model, by the prices of the model metadata.

import { freshInput, type Usage } from "../generation/usage.ts";
import { OTHER } from "./finished-request.ts";

/** Per 1,000 tokens, in the currency of the metadata. */
export interface ModelPrices {
  inputTokens: number;
  outputTokens: number;
}

export interface CostRow {
  key_id: string;
  model_id: string;
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
  cost: number;
}

/** Requests without a known key. */
export const NO_KEY = "(none)";

const MAX_ROWS = 2_000;

/** Tokens read from a cache and written to one cost what other input costs: the metadata knows no other price. */
export function costOf(usage: Usage, prices: ModelPrices | undefined): number {
  if (prices === undefined) return 0;
  const input = freshInput(usage) + (usage.input.cacheRead ?? 0) + (usage.input.cacheWrite ?? 0);
  return (input * prices.inputTokens + usage.output.total * prices.outputTokens) / 1000;
}

export class CostLedger {
  readonly #keys = new Map<string, Map<string, CostRow>>();
  #size = 0;

  /** `model` is a name that may be counted by itself. */
  add(keyId: string | undefined, model: string, usage: Usage, cost: number): void {
    const row = this.#keys.get(keyId ?? NO_KEY)?.get(model) ?? this.#rowFor(keyId ?? NO_KEY, model);
    row.requests++;
    row.prompt_tokens += usage.input.total;
    row.completion_tokens += usage.output.total;
    row.cost += cost;
  }

  #rowFor(keyId: string, model: string): CostRow {
    const isFull = this.#size >= MAX_ROWS;
    const [key_id, model_id] = isFull ? [OTHER, OTHER] : [keyId, model];
    let models = this.#keys.get(key_id);
    if (models === undefined) {
      models = new Map();
      this.#keys.set(key_id, models);
    }
    let row = models.get(model_id);
    if (row === undefined) {
      row = { key_id, model_id, requests: 0, prompt_tokens: 0, completion_tokens: 0, cost: 0 };
      models.set(model_id, row);
      this.#size++;
    }
    return row;
  }

  /** The dearest first. */
  rows(): CostRow[] {
    const rows = [...this.#keys.values()].flatMap((models) => [...models.values()]);
    return rows.sort((a, b) => b.cost - a.cost || b.prompt_tokens - a.prompt_tokens);
  }

  restore(rows: readonly CostRow[]): void {
    for (const row of rows) Object.assign(this.#rowFor(row.key_id, row.model_id), row);
  }

  clear(): void {
    this.#keys.clear();
    this.#size = 0;
  }
}
