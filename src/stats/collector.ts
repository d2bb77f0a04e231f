// Counts finished requests: over all, per model, per backend, per key. Bounded, whatever clients send as a model's name.

import type { Settings } from "../config/sections/registry.ts";
import type { Usage } from "../generation/usage.ts";
import type { Clock } from "../lib/clock.ts";
import { getOrMake } from "../lib/get-or-make.ts";
import { isSlotOf, RingClock, slotsWithin, type WindowSlot } from "../lib/time-rings.ts";
import { addCost, CostLedger, costOf, hourOf, type ModelPrices, NONE } from "./costs.ts";
import { countedUsage, OTHER } from "./counted.ts";
import { isFailure, type Outcome } from "./outcome.ts";
import { COARSE, FINE, WindowedLatencies } from "./percentiles.ts";
import type { RequestRecord } from "./request-record.ts";
import type { SlotCheck } from "./windowed-numbers.ts";
import { failureShare, type Sums, WindowedSums } from "./windows.ts";
import type { CostRow, WrittenBackendRow, WrittenCosts, WrittenRow, WrittenStats } from "./written-stats.ts";

type StatsSettings = Omit<Settings["admin"]["stats"], "persistence">;

interface CollectorParts {
  settings: StatsSettings;
  clock: Clock;
  /** The price of a model on a backend; asked once per pair until `pricesChanged`. */
  priceOf?(model: string, backend: string | undefined): ModelPrices | undefined;
  /** Most models that are counted by name. */
  maxModels?: number;
  maxBackends?: number;
}

export interface Row {
  readonly name: string;
  readonly sums: WindowedSums;
  /** Milliseconds since 1970. */
  lastUsedMs: number;
}

/** Its requests are attempts: each counts at the backend that it was made at. */
export interface BackendRow extends Row {
  readonly latencies: WindowedLatencies;
  /** Undefined until the backend has streamed an answer. */
  firstTokens: WindowedLatencies | undefined;
}

/** A client that left, or reads too slowly, is nothing of the backend's. */
export type AttemptOutcome = Exclude<Outcome, "stream_broken">;

/** Where requests of one model on one backend are counted; made once per pair. */
export interface StatsHandle {
  readonly model: Row;
  readonly backend: BackendRow | undefined;
  readonly prices: ModelPrices | undefined;
  /** Where its tokens are counted in this hour, by the caller. */
  costHourMs: number;
  readonly costRows: Map<string, CostRow>;
}

/** The sums of one row over a window, or over all time. */
export type ModelSums = Sums & { name: string; lastUsedMs: number };
type BackendSums = ModelSums & { latency: Percentiles; firstToken: Percentiles | undefined };

export interface Percentiles {
  p50: number;
  p95: number;
  p99: number;
}

const DEFAULT_MAX_MODELS = 500;
const DEFAULT_MAX_BACKENDS = 300;
const LOAD_WINDOW_MS = 60_000;
/** Callers whose rows a handle holds; further ones are looked for each time. */
const MAX_HELD_ROWS = 1_000;
/** Users that requests name themselves, counted by name within an hour. */
const MAX_END_USERS = 100;
/** A model's name is the client's text. */
const MAX_NAME_LENGTH = 256;

export class StatsCollector {
  readonly #clock: RingClock;
  readonly #parts: CollectorParts;
  readonly #startedMs: number;
  #settings: StatsSettings;
  #overall = new WindowedSums();
  #latencies = new WindowedLatencies(FINE);
  readonly #models = new Map<string, Row>();
  readonly #backends = new Map<string, BackendRow>();
  readonly #costs = new CostLedger();
  /** Those of this hour whose tokens are counted by name. */
  readonly #endUsers = new Set<string>();
  #endUsersHourMs = 0;
  #epoch = 0;

  constructor(parts: CollectorParts) {
    this.#parts = parts;
    this.#settings = parts.settings;
    this.#clock = new RingClock(parts.clock);
    this.#startedMs = this.#clock.tick();
  }

  get settings(): StatsSettings {
    return this.#settings;
  }

  /** Grows whenever handles that were given out are good no longer. */
  get epoch(): number {
    return this.#epoch;
  }

  get uptimeSeconds(): number {
    return Math.floor((this.#clock.tick() - this.#startedMs) / 1000);
  }

  /** True if requests for this model are counted by its name; `wasServed`: a backend was asked for it. */
  isCountedByName(model: string, wasServed: boolean): boolean {
    if (this.#models.has(model)) return true;
    const { maxModels = DEFAULT_MAX_MODELS } = this.#parts;
    return wasServed && model.length <= MAX_NAME_LENGTH && this.#models.size < maxModels;
  }

  /** True if tokens of a model on a backend have a price now; takes both names as they are counted. */
  hasPrice(model: string, backend: string): boolean {
    return this.#parts.priceOf?.(model, backend === NONE ? undefined : backend) !== undefined;
  }

  /** By the prices of now, of what is kept of a request; undefined: there is no price, or its tokens were not counted. */
  costOf(record: RequestRecord) {
    const { model, answeredBy = model, backend, cache, promptTokens, completionTokens, isShared, vendorBatch } = record;
    if (cache === "HIT" || isShared) return 0;
    const prices = this.#parts.priceOf?.(answeredBy, backend);
    if (prices === undefined || promptTokens === undefined || completionTokens === undefined) return undefined;
    const usage: Usage = { input: { total: promptTokens }, output: { total: completionTokens } };
    if (vendorBatch !== undefined) usage.isBatched = true;
    return costOf(usage, prices);
  }

  /** The name under which a backend is counted: its own, unless there were too many. */
  backendName(backend: string): string {
    const { maxBackends = DEFAULT_MAX_BACKENDS } = this.#parts;
    return this.#backends.has(backend) || this.#backends.size < maxBackends ? backend : OTHER;
  }

  /** Takes both names as they are counted. */
  handle(model: string, backend: string | undefined): StatsHandle {
    return {
      model: getOrMake(this.#models, model, newRow),
      backend: backend === undefined ? undefined : this.backendRow(backend),
      prices: this.#parts.priceOf?.(model, backend),
      costHourMs: 0,
      costRows: new Map(),
    };
  }

  backendRow(name: string): BackendRow {
    return getOrMake(this.#backends, name, newBackendRow);
  }

  /** An attempt at a backend is over; `firstTokenMs` is known of streams. */
  attempted(row: BackendRow, outcome: AttemptOutcome, durationMs: number, firstTokenMs: number | undefined): void {
    if (!this.#settings.enabled) return;
    row.lastUsedMs = this.#clock.tick();
    const at = this.#clock.position;
    const succeeded = outcome === "succeeded" ? 1 : 0;
    const failed = outcome === "failed" ? 1 : 0;
    const refused = outcome === "refused" ? 1 : 0;
    row.sums.add(at, 1, failed, refused, succeeded, succeeded * durationMs, 0, 0, 0);
    if (succeeded === 1) row.latencies.add(at, durationMs);
    if (firstTokenMs !== undefined) {
      row.firstTokens ??= new WindowedLatencies(COARSE);
      row.firstTokens.add(at, firstTokenMs);
    }
  }

  /** On the path of every request. `answering`: the handle of the model that answered. Returns the cost. */
  finished(handle: StatsHandle, answering: StatsHandle, request: RequestRecord): number {
    if (!this.#settings.enabled) return 0;
    const timeMs = this.#clock.tick();
    const at = this.#clock.position;
    const { durationMs = 0, outcome } = request;
    const failed = isFailure(outcome) ? 1 : 0;
    const refused = outcome === "refused" ? 1 : 0;
    const succeeded = outcome === "succeeded" ? 1 : 0;
    const latencyMs = succeeded * durationMs;
    const usage = this.#settings.token_tracking ? countedUsage(request) : undefined;
    const prompt = usage === undefined ? 0 : usage.input.total;
    const completion = usage === undefined ? 0 : usage.output.total;
    const generatingMs = completion > 0 ? durationMs : 0;
    if (succeeded === 1) this.#latencies.add(at, durationMs);
    this.#overall.add(at, 1, failed, refused, succeeded, latencyMs, prompt, completion, generatingMs);
    const { model, backend } = handle;
    model.sums.add(at, 1, failed, refused, succeeded, latencyMs, prompt, completion, generatingMs);
    model.lastUsedMs = timeMs;
    if (usage === undefined) return 0;
    backend?.sums.add(at, 0, 0, 0, 0, 0, prompt, completion, generatingMs);
    const cost = costOf(usage, answering.prices);
    addCost(this.#costRow(timeMs, answering, request), usage, cost);
    return cost;
  }

  /** A request was refused before it was known which model it asks for. */
  turnedAway(): void {
    if (!this.#settings.enabled) return;
    this.#clock.tick();
    this.#overall.add(this.#clock.position, 1, 0, 1, 0, 0, 0, 0, 0);
  }

  /** A row is looked for once in an hour. */
  #costRow(
    timeMs: number,
    handle: StatsHandle,
    { keyId = NONE, userId, endUser, organizationId = NONE }: RequestRecord,
  ) {
    const hourMs = hourOf(timeMs);
    const user = userId ?? (endUser === undefined ? NONE : this.#endUser(endUser, hourMs));
    const { costRows } = handle;
    if (handle.costHourMs !== hourMs) {
      handle.costHourMs = hourMs;
      costRows.clear();
    }
    // A key may stand for many users, who are named by their requests.
    const caller = user === NONE ? keyId : `${keyId}\n${user}`;
    let row = costRows.get(caller);
    if (row === undefined) {
      row = this.#costs.row(timeMs, {
        key_id: keyId,
        user_id: user,
        organization_id: organizationId,
        model_id: handle.model.name,
        backend_name: handle.backend?.name ?? NONE,
      });
      if (costRows.size < MAX_HELD_ROWS) costRows.set(caller, row);
    }
    return row;
  }

  /** Clients can name as many as they like; the rows of an hour are for keys and models, too. */
  #endUser(name: string, hourMs: number): string {
    if (this.#endUsersHourMs !== hourMs) {
      this.#endUsersHourMs = hourMs;
      this.#endUsers.clear();
    }
    if (this.#endUsers.has(name)) return name;
    if (this.#endUsers.size >= MAX_END_USERS) return OTHER;
    this.#endUsers.add(name);
    return name;
  }

  apply(settings: StatsSettings): void {
    this.#settings = settings;
  }

  /** New prices, or a metadata file that was read again. */
  pricesChanged(): void {
    this.#epoch++;
  }

  reset(): void {
    this.#overall = new WindowedSums();
    this.#latencies = new WindowedLatencies(FINE);
    this.#models.clear();
    this.#backends.clear();
    this.#costs.clear();
    this.#epoch++;
  }

  overall(windowMs: number | undefined): Sums {
    return this.#overall.sum(this.#slots(windowMs));
  }

  percentiles(windowMs: number | undefined): Percentiles {
    return percentilesOf(this.#latencies, this.#slots(windowMs));
  }

  /** Rows with requests in the window, the busiest first. */
  models(windowMs: number | undefined): ModelSums[] {
    const slots = this.#slots(windowMs);
    return busiestFirst([...this.#models.values()].map((row) => sumsOf(row, slots)));
  }

  backends(windowMs: number | undefined): BackendSums[] {
    const slots = this.#slots(windowMs);
    const rows = [...this.#backends.values()].map((row) => ({
      ...sumsOf(row, slots),
      latency: percentilesOf(row.latencies, slots),
      firstToken: firstTokenOf(row, slots),
    }));
    return busiestFirst(rows);
  }

  /** The backend's sums since the last reset. */
  backend(name: string): ModelSums | undefined {
    const row = this.#backends.get(name);
    return row === undefined ? undefined : sumsOf(row, undefined);
  }

  /** Every row that was counted in this time, with the beginning of its hour or day. */
  costs(sinceMs?: number, untilMs?: number): Iterable<{ fromMs: number | undefined; row: CostRow }> {
    return this.#costs.rows(sinceMs, untilMs);
  }

  /** Milliseconds since 1970. */
  get nowMs(): number {
    return this.#clock.tick();
  }

  /** The last one to two minutes, for GET /admin/health. */
  load(): { requests: number; requestsPerSecond: number; errorRate: number } {
    const timeMs = this.#clock.tick();
    const sums = this.#overall.sum(slotsWithin(LOAD_WINDOW_MS, timeMs));
    const { requests } = sums;
    const sinceMinuteMs = timeMs % LOAD_WINDOW_MS;
    const coveredMs = Math.max(1000, Math.min(LOAD_WINDOW_MS + sinceMinuteMs, timeMs - this.#startedMs));
    const requestsPerSecond = requests / (coveredMs / 1000);
    return { requests, requestsPerSecond, errorRate: failureShare(sums) };
  }

  /** Leaves out the rows. */
  write(): Pick<WrittenStats, "overall" | "latencies" | "costs"> {
    return { overall: this.#overall.write(), latencies: this.#latencies.write(), costs: [] };
  }

  /** Row by row, so that a writer of many may pause in between. */
  *writeModels(): Generator<WrittenRow> {
    for (const row of this.#models.values()) yield writtenRow(row);
  }

  writeCosts(): Generator<WrittenCosts> {
    return this.#costs.write();
  }

  *writeBackends(): Generator<WrittenBackendRow> {
    for (const row of this.#backends.values()) {
      yield { ...writtenRow(row), latencies: row.latencies.write(), first_tokens: row.firstTokens?.write() };
    }
  }

  /** Replaces everything that was counted so far; called before the first request. Totals and costs are always restored. */
  restore(written: WrittenStats, withWindows = true): void {
    this.reset();
    const timeMs = this.#clock.tick();
    const isSlot: SlotCheck = (slot, bucket) => withWindows && isSlotOf(slot, bucket, timeMs);
    this.#overall.restore(written.overall, isSlot);
    this.#latencies.restore(written.latencies, isSlot);
    for (const row of written.models) restoreRow(getOrMake(this.#models, row.name, newRow), row, isSlot);
    for (const row of written.backends) {
      const backend = this.backendRow(row.name);
      restoreRow(backend, row, isSlot);
      backend.latencies.restore(row.latencies ?? [], isSlot);
      if (row.first_tokens === undefined) continue;
      backend.firstTokens = new WindowedLatencies(COARSE);
      backend.firstTokens.restore(row.first_tokens, isSlot);
    }
    this.#costs.restore(written.cost_history ?? [], written.costs, timeMs);
  }

  #slots(windowMs: number | undefined): WindowSlot[] | undefined {
    if (windowMs === undefined) return undefined;
    return slotsWithin(Math.min(windowMs, this.#settings.retention_window), this.#clock.tick());
  }
}

function newRow(name: string): Row {
  return { name, sums: new WindowedSums(), lastUsedMs: 0 };
}

function newBackendRow(name: string): BackendRow {
  return { ...newRow(name), latencies: new WindowedLatencies(COARSE), firstTokens: undefined };
}

function sumsOf({ name, lastUsedMs, sums }: Row, slots: readonly WindowSlot[] | undefined): ModelSums {
  return { name, lastUsedMs, ...sums.sum(slots) };
}

function busiestFirst<SomeSums extends ModelSums>(rows: readonly SomeSums[]): SomeSums[] {
  return rows
    .filter(({ requests }) => requests > 0)
    .sort((a, b) => b.requests - a.requests || (a.name < b.name ? -1 : 1));
}

function percentilesOf(latencies: WindowedLatencies, slots: readonly WindowSlot[] | undefined): Percentiles {
  const [p50, p95, p99] = latencies.percentiles(slots, [0.5, 0.95, 0.99]);
  return { p50: p50 as number, p95: p95 as number, p99: p99 as number };
}

/** Undefined where nothing was streamed in this time. */
function firstTokenOf({ firstTokens }: BackendRow, slots: readonly WindowSlot[] | undefined): Percentiles | undefined {
  const percentiles = firstTokens && percentilesOf(firstTokens, slots);
  return percentiles?.p50 === 0 ? undefined : percentiles;
}

function writtenRow({ name, lastUsedMs, sums }: Row): WrittenRow {
  return { name, last_used: lastUsedMs, sums: sums.write() };
}

function restoreRow(row: Row, written: WrittenRow, isSlot: SlotCheck): void {
  row.lastUsedMs = written.last_used;
  row.sums.restore(written.sums, isSlot);
}
