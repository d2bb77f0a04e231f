// Counts finished requests: over all, per model, per backend, per key. Bounded, whatever clients send as a model's name.

import type { Clock } from "../lib/clock.ts";
import { isSlotOf, RingClock, slotsWithin, type WindowSlot } from "../lib/time-rings.ts";
import { CostLedger, type CostRow, costOf, type ModelPrices } from "./costs.ts";
import { countedUsage, type FinishedRequest, hasFailed, OTHER } from "./finished-request.ts";
import { WindowedLatencies, type WrittenLatencies } from "./percentiles.ts";
import { type Sums, WindowedSums, type WrittenSums } from "./windows.ts";

/** Section admin.stats; durations in milliseconds. */
export interface StatsSettings {
  enabled: boolean;
  /** Windows look back no further than this. */
  retention_window: number;
  token_tracking: boolean;
}

export interface CollectorParts {
  settings: StatsSettings;
  clock: Clock;
  /** The price of a model on a backend; asked once per pair until `pricesChanged`. */
  priceOf?(model: string, backend: string | undefined): ModelPrices | undefined;
  /** Most models counted by name. */
  maxModels?: number;
  maxBackends?: number;
}

export interface Row {
  readonly name: string;
  readonly sums: WindowedSums;
  /** Milliseconds since 1970. */
  lastUsedMs: number;
}

/** Where requests of one model on one backend are counted; made once per pair. */
export interface StatsHandle {
  readonly model: Row;
  readonly backend: Row | undefined;
  readonly prices: ModelPrices | undefined;
}

/** What the snapshot file keeps. */
export interface WrittenStats {
  overall: WrittenSums[];
  latencies: WrittenLatencies[];
  models: WrittenRow[];
  backends: WrittenRow[];
  costs: CostRow[];
}

export interface WrittenRow {
  name: string;
  last_used: number;
  sums: WrittenSums[];
}

export interface Percentiles {
  p50: number;
  p95: number;
  p99: number;
}

const DEFAULT_MAX_MODELS = 500;
const DEFAULT_MAX_BACKENDS = 300;
const LOAD_WINDOW_MS = 60_000;
/** A model's name is the client's text. */
const MAX_NAME_LENGTH = 256;

export class StatsCollector {
  readonly #clock: RingClock;
  readonly #parts: CollectorParts;
  readonly #startedMs: number;
  #settings: StatsSettings;
  #overall = new WindowedSums();
  #latencies = new WindowedLatencies();
  readonly #models = new Map<string, Row>();
  readonly #backends = new Map<string, Row>();
  readonly #costs = new CostLedger();
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

  /** Whether requests for this model are counted by its name, now that a backend was or was not asked for it. */
  isCountedByName(model: string, wasServed: boolean): boolean {
    if (this.#models.has(model)) return true;
    const { maxModels = DEFAULT_MAX_MODELS } = this.#parts;
    return wasServed && model.length <= MAX_NAME_LENGTH && this.#models.size < maxModels;
  }

  /** The name under which a backend is counted: its own, unless there were too many. */
  backendName(backend: string): string {
    const { maxBackends = DEFAULT_MAX_BACKENDS } = this.#parts;
    return this.#backends.has(backend) || this.#backends.size < maxBackends ? backend : OTHER;
  }

  /** Both names as they are counted. */
  handle(model: string, backend: string | undefined): StatsHandle {
    return {
      model: rowOf(this.#models, model),
      backend: backend === undefined ? undefined : rowOf(this.#backends, backend),
      prices: this.#parts.priceOf?.(model, backend),
    };
  }

  /** On the path of every request. `answering`: the handle of the model that answered. Returns the cost. */
  finished(handle: StatsHandle, answering: StatsHandle, request: FinishedRequest): number {
    if (!this.#settings.enabled) return 0;
    const timeMs = this.#clock.tick();
    const at = this.#clock.position;
    const failed = hasFailed(request) ? 1 : 0;
    const { durationMs } = request;
    const usage = this.#settings.token_tracking ? countedUsage(request) : undefined;
    const prompt = usage === undefined ? 0 : usage.input.total;
    const completion = usage === undefined ? 0 : usage.output.total;
    const generatingMs = completion > 0 ? durationMs : 0;
    this.#latencies.add(at, durationMs);
    this.#overall.add(at, failed, durationMs, prompt, completion, generatingMs);
    const { model, backend } = handle;
    model.sums.add(at, failed, durationMs, prompt, completion, generatingMs);
    model.lastUsedMs = timeMs;
    if (backend !== undefined) {
      backend.sums.add(at, failed, durationMs, prompt, completion, generatingMs);
      backend.lastUsedMs = timeMs;
    }
    if (usage === undefined) return 0;
    const cost = costOf(usage, answering.prices);
    this.#costs.add(request.keyId, answering.model.name, usage, cost);
    return cost;
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
    this.#latencies = new WindowedLatencies();
    this.#models.clear();
    this.#backends.clear();
    this.#costs.clear();
    this.#epoch++;
  }

  overall(windowMs: number | undefined): Sums {
    return this.#overall.sum(this.#slots(windowMs));
  }

  percentiles(windowMs: number | undefined): Percentiles {
    const [p50, p95, p99] = this.#latencies.percentiles(this.#slots(windowMs), [0.5, 0.95, 0.99]);
    return { p50: p50 as number, p95: p95 as number, p99: p99 as number };
  }

  /** Rows with requests in the window, the busiest first. */
  models(windowMs: number | undefined): (Sums & { name: string; lastUsedMs: number })[] {
    return this.#rows(this.#models, windowMs);
  }

  backends(windowMs: number | undefined): (Sums & { name: string; lastUsedMs: number })[] {
    return this.#rows(this.#backends, windowMs);
  }

  costs(): CostRow[] {
    return this.#costs.rows();
  }

  /** The last one to two minutes, for GET /admin/health. */
  load(): { requests: number; requestsPerSecond: number; errorRate: number } {
    const timeMs = this.#clock.tick();
    const { requests, failed } = this.#overall.sum(slotsWithin(LOAD_WINDOW_MS, timeMs));
    const sinceMinuteMs = timeMs % LOAD_WINDOW_MS;
    const coveredMs = Math.max(1000, Math.min(LOAD_WINDOW_MS + sinceMinuteMs, timeMs - this.#startedMs));
    const requestsPerSecond = requests / (coveredMs / 1000);
    return { requests, requestsPerSecond, errorRate: requests === 0 ? 0 : failed / requests };
  }

  /** All but the rows. */
  write(): Pick<WrittenStats, "overall" | "latencies" | "costs"> {
    return { overall: this.#overall.write(), latencies: this.#latencies.write(), costs: this.#costs.rows() };
  }

  /** Row by row, so that whoever writes many may pause in between. */
  *writeModels(): Generator<WrittenRow> {
    yield* writtenRows(this.#models);
  }

  *writeBackends(): Generator<WrittenRow> {
    yield* writtenRows(this.#backends);
  }

  /** Takes the place of everything that was counted so far; called before the first request. */
  restore(written: WrittenStats): void {
    this.reset();
    const timeMs = this.#clock.tick();
    const isSlot = (slot: number, bucket: number) => isSlotOf(slot, bucket, timeMs);
    this.#overall.restore(written.overall, isSlot);
    this.#latencies.restore(written.latencies, isSlot);
    const { maxModels = DEFAULT_MAX_MODELS, maxBackends = DEFAULT_MAX_BACKENDS } = this.#parts;
    restoreRows(this.#models, written.models, maxModels, isSlot);
    restoreRows(this.#backends, written.backends, maxBackends, isSlot);
    this.#costs.restore(written.costs);
  }

  #slots(windowMs: number | undefined): WindowSlot[] | undefined {
    if (windowMs === undefined) return undefined;
    return slotsWithin(Math.min(windowMs, this.#settings.retention_window), this.#clock.tick());
  }

  #rows(rows: ReadonlyMap<string, Row>, windowMs: number | undefined): (Sums & { name: string; lastUsedMs: number })[] {
    const slots = this.#slots(windowMs);
    return [...rows.values()]
      .map(({ name, lastUsedMs, sums }) => ({ name, lastUsedMs, ...sums.sum(slots) }))
      .filter(({ requests }) => requests > 0)
      .sort((a, b) => b.requests - a.requests || (a.name < b.name ? -1 : 1));
  }
}

function rowOf(rows: Map<string, Row>, name: string): Row {
  let row = rows.get(name);
  if (row === undefined) {
    row = { name, sums: new WindowedSums(), lastUsedMs: 0 };
    rows.set(name, row);
  }
  return row;
}

function* writtenRows(rows: ReadonlyMap<string, Row>): Generator<WrittenRow> {
  for (const { name, lastUsedMs, sums } of rows.values()) yield { name, last_used: lastUsedMs, sums: sums.write() };
}

function restoreRows(
  rows: Map<string, Row>,
  written: readonly WrittenRow[],
  maxRows: number,
  isSlot: (slot: number, bucket: number) => boolean,
): void {
  for (const { name, last_used, sums } of written.slice(0, maxRows)) {
    const row = rowOf(rows, name);
    row.lastUsedMs = last_used;
    row.sums.restore(sums, isSlot);
  }
}
