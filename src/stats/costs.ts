// What the tokens cost by the prices of the model metadata: per key, user, organization, model and backend, by the hour, and
// for what is older than a week by the day. Bounded, and kept over restarts.

import { freshInput, type Usage } from "../generation/usage.ts";
import { getOrMake } from "../lib/get-or-make.ts";
import { OTHER } from "./counted.ts";
import {
  type CostNames,
  type CostRow,
  type CostSums,
  costSums,
  type EarlierCostRow,
  type WrittenCosts,
} from "./written-stats.ts";

/** Of tokens per 1,000, in the currency of the metadata. */
export interface ModelPrices {
  inputTokens: number;
  outputTokens: number;
  /** Undefined: what other input costs. */
  cacheReadTokens?: number | undefined;
  cacheWriteTokens?: number | undefined;
  /** Undefined: what other output costs. */
  reasoningTokens?: number | undefined;
  /** Of one picture that was made. */
  image?: number | undefined;
  /** Of one minute of sound that was heard. */
  audioMinute?: number | undefined;
  /** Share that the vendor's own batches take off; undefined: the usual one. */
  batchDiscount?: number | undefined;
}

/** What OpenAI and Anthropic take off. */
const USUAL_BATCH_DISCOUNT = 0.5;

/** Money is added up in billionths of the currency: sums of fractions would drift. */
export const NANOS = 1_000_000_000;

/** Requests without a known key, user, organization or backend. */
export const NONE = "(none)";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Hours are kept for the first time, days for the second; older costs are one sum. */
const HOURS_KEPT_MS = 8 * DAY_MS;
const DAYS_KEPT_MS = 400 * DAY_MS;
/** Rows of one stretch of time, and of all. */
const MAX_ROWS = 1_000;
const MAX_ALL_ROWS = 20_000;

const SUMS = costSums.keyof().options;

/** In billionths of the currency, rounded up. */
export function nanosOf(usage: Usage, prices: ModelPrices | undefined): number {
  if (prices === undefined) return 0;
  const { inputTokens, outputTokens, cacheReadTokens = inputTokens, cacheWriteTokens = inputTokens } = prices;
  const { reasoningTokens = outputTokens, image = 0, audioMinute = 0 } = prices;
  const { cacheRead = 0, cacheWrite = 0 } = usage.input;
  const { total, reasoning = 0 } = usage.output;
  const perThousand =
    freshInput(usage) * nanos(inputTokens) +
    cacheRead * nanos(cacheReadTokens) +
    cacheWrite * nanos(cacheWriteTokens) +
    Math.max(0, total - reasoning) * nanos(outputTokens) +
    Math.min(total, reasoning) * nanos(reasoningTokens);
  const { images = 0, audioSeconds = 0, isBatched = false } = usage;
  const whole =
    Math.ceil(perThousand / 1000) + images * nanos(image) + Math.ceil((audioSeconds * nanos(audioMinute)) / 60);
  return isBatched ? Math.ceil(whole * (1 - (prices.batchDiscount ?? USUAL_BATCH_DISCOUNT))) : whole;
}

function nanos(price: number): number {
  return Math.round(price * NANOS);
}

export function costOf(usage: Usage, prices: ModelPrices | undefined): number {
  return nanosOf(usage, prices) / NANOS;
}

export function addCost(row: CostSums, usage: Usage, cost: number): void {
  row.requests++;
  row.prompt_tokens += usage.input.total;
  row.completion_tokens += usage.output.total;
  row.cached_tokens += usage.input.cacheRead ?? 0;
  row.cost += cost;
}

class Stretch {
  readonly fromMs: number;
  readonly toMs: number;
  readonly #rows = new Map<string, CostRow>();

  constructor(fromMs: number, toMs: number) {
    this.fromMs = fromMs;
    this.toMs = toMs;
  }

  get size(): number {
    return this.#rows.size;
  }

  get rows(): Iterable<CostRow> {
    return this.#rows.values();
  }

  row(wanted: CostNames): CostRow {
    const found = this.#rows.get(keyOf(wanted));
    if (found !== undefined) return found;
    const names = this.#rows.size < MAX_ROWS ? wanted : ALL_OTHERS;
    return getOrMake(this.#rows, keyOf(names), () => ({ ...names, ...noCosts() }));
  }

  take(rows: Iterable<CostRow>): void {
    for (const row of rows) addSums(this.row(row), row);
  }
}

const ALL_OTHERS: CostNames = {
  key_id: OTHER,
  user_id: OTHER,
  organization_id: OTHER,
  model_id: OTHER,
  backend_name: OTHER,
};

function keyOf({ key_id, user_id, organization_id, model_id, backend_name }: CostNames): string {
  return [key_id, user_id, organization_id, model_id, backend_name].join("\u0000");
}

export function noCosts(): CostSums {
  return { requests: 0, prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, cost: 0 };
}

export function addSums(to: CostSums, from: CostSums): void {
  for (const sum of SUMS) to[sum] += from[sum];
}

export class CostLedger {
  /** Costs older than the days; their time is no longer known. */
  #older = new Stretch(0, 0);
  /** Days, then hours; the oldest first. */
  #stretches: Stretch[] = [];

  /** The row to be written until the hour is over. */
  row(timeMs: number, names: CostNames): CostRow {
    const hourMs = hourOf(timeMs);
    let newest = this.#stretches.at(-1);
    // A clock that was behind when the file was written must not open an hour before the newest one.
    if (newest === undefined || newest.toMs <= hourMs) {
      newest = new Stretch(hourMs, hourMs + HOUR_MS);
      this.#stretches.push(newest);
      this.#compact(timeMs);
    }
    return newest.row(names);
  }

  /** Every row of the stretches that the time touches, with the beginning of its stretch; undefined: without a bound. */
  *rows(sinceMs?: number, untilMs?: number): Generator<{ fromMs: number | undefined; row: CostRow }> {
    if (sinceMs === undefined) for (const row of this.#older.rows) yield { fromMs: undefined, row };
    for (const { fromMs, toMs, rows } of this.#stretches) {
      const isTouched = (sinceMs === undefined || toMs > sinceMs) && (untilMs === undefined || fromMs < untilMs);
      if (isTouched) for (const row of rows) yield { fromMs, row };
    }
  }

  /** Stretch by stretch, so that a writer of many may pause in between. */
  *write(): Generator<WrittenCosts> {
    for (const { fromMs, toMs, rows } of [this.#older, ...this.#stretches]) {
      yield { from: fromMs, to: toMs, rows: [...rows] };
    }
  }

  restore(written: readonly WrittenCosts[], earlier: readonly EarlierCostRow[], timeMs: number): void {
    this.clear();
    const unknown = { user_id: NONE, organization_id: NONE, backend_name: NONE, cached_tokens: 0 };
    this.#older.take(earlier.map((row) => ({ ...unknown, ...row })));
    for (const { from, to, rows } of written.toSorted((a, b) => a.from - b.from)) {
      const isKnownTime = to > from && from >= (this.#stretches.at(-1)?.toMs ?? 0) && from <= timeMs;
      const stretch = isKnownTime ? new Stretch(from, to) : this.#older;
      stretch.take(rows);
      if (isKnownTime) this.#stretches.push(stretch);
    }
    this.#compact(timeMs);
  }

  clear(): void {
    this.#older = new Stretch(0, 0);
    this.#stretches = [];
  }

  /** Old hours become days, and old days one sum; the same for the oldest of too many rows. */
  #compact(timeMs: number): void {
    const kept: Stretch[] = [];
    let allRows = this.#stretches.reduce((sum, { size }) => sum + size, 0);
    for (const stretch of this.#stretches) {
      if (stretch.toMs <= timeMs - DAYS_KEPT_MS || (allRows > MAX_ALL_ROWS && stretch !== this.#stretches.at(-1))) {
        this.#older.take(stretch.rows);
        allRows -= stretch.size;
        continue;
      }
      const isOldHour = stretch.toMs - stretch.fromMs === HOUR_MS && stretch.toMs <= timeMs - HOURS_KEPT_MS;
      if (!isOldHour) {
        kept.push(stretch);
        continue;
      }
      const dayMs = Math.floor(stretch.fromMs / DAY_MS) * DAY_MS;
      let day = kept.at(-1);
      if (day?.fromMs !== dayMs) {
        day = new Stretch(dayMs, dayMs + DAY_MS);
        kept.push(day);
      }
      day.take(stretch.rows);
    }
    this.#stretches = kept;
  }
}

export function hourOf(timeMs: number): number {
  return Math.floor(timeMs / HOUR_MS) * HOUR_MS;
}
