// Writes all metrics to the history now and then, forgets samples that are too old, and gives their space back. Whatever
// is wrong with the storage is logged once and tried again; nothing here throws, waits for a lock, or holds the
// event loop for longer than a few hundred rows.

import type { Settings } from "../../config/sections/registry.ts";
import { otherWork } from "../../lib/other-work.ts";
import { StorageError } from "../../lib/resilient-database.ts";
import type { Logger } from "../../logging/logger.ts";
import type { MetricSample } from "../registry.ts";
import { untilDaily } from "./schedule.ts";
import { DAY_MS, type HistoryStore } from "./store.ts";

/** `path` is absolute. */
export type HistorySettings = Omit<Settings["metrics"]["persistence"], "backend">;

interface SamplerParts {
  settings: HistorySettings;
  store: HistoryStore;
  /** All metrics as they are now, one by one. */
  read(): Iterable<MetricSample>;
  log: Logger;
  wallTime(): number;
  /** Told after each snapshot, for the metrics. */
  written?(isOk: boolean): void;
  /** Calls back once; returns what takes it back. */
  after?(durationMs: number, callback: () => void): () => void;
}

const ROWS_PER_STEP = 500;
const MAX_ROWS_PER_SNAPSHOT = 50_000;
const MAX_RETRIES = 5;
const RETRY_MS = 5_000;
const FORGET_EVERY_MS = 3_600_000;
const FIRST_PLAN_MS = 60_000;

export class HistorySampler {
  readonly #parts: SamplerParts;
  #settings: HistorySettings;
  #stopped = new AbortController();
  #cancelSample = () => {};
  #cancelCompaction = () => {};
  #forgottenMs = 0;
  #trouble: string | undefined;
  /** Runs one piece of work at a time. */
  #work: Promise<unknown> = Promise.resolve();

  constructor(parts: SamplerParts) {
    this.#parts = parts;
    this.#settings = parts.settings;
  }

  /** Why the last snapshot could not be written; undefined when it was. */
  get problem(): string | undefined {
    return this.#trouble === undefined ? undefined : `${this.#settings.path} cannot be written: ${this.#trouble}`;
  }

  start(): void {
    this.#planSample();
    // The time of day is local: the first look at it loads the time zones, 4 MB, and the start must not wait for that.
    this.#cancelCompaction = this.#after(FIRST_PLAN_MS, () => this.#planCompaction());
  }

  /** Interval, retention and compaction; what else is different needs a restart. */
  apply(settings: HistorySettings): void {
    const before = this.#settings;
    this.#settings = settings;
    if (this.#stopped.signal.aborted) return;
    if (before.snapshot_interval_seconds !== settings.snapshot_interval_seconds) this.#planSample();
    if (!Bun.deepEquals(before.compaction, settings.compaction)) this.#planCompaction();
    if (settings.retention_days < before.retention_days) void this.#queue(() => this.#forget());
  }

  /** Writes a snapshot now. False: it was not written. */
  async sample(): Promise<boolean> {
    let isWritten = false;
    await this.#queue(async () => {
      isWritten = await this.#snapshot();
      if (isWritten && this.#parts.wallTime() - this.#forgottenMs >= FORGET_EVERY_MS) await this.#forget();
    });
    return isWritten;
  }

  async compact(): Promise<void> {
    await this.#queue(async () => {
      const { store } = this.#parts;
      const beforeMs = await this.#forget();
      if (this.#stopped.signal.aborted) return;
      store.forgetSeries(beforeMs);
      await this.#stepByStep(() => store.shrinkStep());
    });
  }

  /** The last snapshot, at a graceful end. */
  async stop(): Promise<void> {
    this.#cancelSample();
    this.#cancelCompaction();
    await this.sample();
    this.#stopped.abort();
    await this.#work;
    this.#parts.store.close();
  }

  #planSample(): void {
    this.#cancelSample();
    const intervalMs = this.#settings.snapshot_interval_seconds * 1000;
    this.#cancelSample = this.#after(intervalMs, () => {
      this.#planSample();
      void this.#sampleWithRetries(intervalMs);
    });
  }

  /** A file that is locked for a moment must not cost the sample of a whole interval. */
  async #sampleWithRetries(intervalMs: number, retries = 0): Promise<void> {
    if (await this.sample()) return;
    const isWorthwhile = retries < MAX_RETRIES && (retries + 2) * RETRY_MS < intervalMs;
    if (!isWorthwhile || this.#stopped.signal.aborted) return;
    this.#after(RETRY_MS, () => void this.#sampleWithRetries(intervalMs, retries + 1));
  }

  #planCompaction(): void {
    this.#cancelCompaction();
    const { enabled, schedule } = this.#settings.compaction;
    if (!enabled) return;
    this.#cancelCompaction = this.#after(untilDaily(schedule, this.#parts.wallTime()), () => {
      this.#planCompaction();
      void this.compact();
    });
  }

  async #snapshot(): Promise<boolean> {
    const { store, read, wallTime, log, written } = this.#parts;
    try {
      const ts = Math.floor(wallTime());
      let rows: MetricSample[] = [];
      let count = 0;
      for (const sample of read()) {
        if (++count > MAX_ROWS_PER_SNAPSHOT) break;
        rows.push(sample);
        if (rows.length < ROWS_PER_STEP) continue;
        store.write(ts, rows);
        rows = [];
        await otherWork();
      }
      store.write(ts, rows);
      if (this.#trouble !== undefined) log.info("the metrics history is written again");
      this.#trouble = undefined;
      written?.(true);
      return true;
    } catch (error) {
      this.#tell(error);
      written?.(false);
      return false;
    }
  }

  /**
   * Retention holds whether or not compaction is switched on: nothing here grows for ever. Returns the moment before
   * which there are no samples any more.
   */
  async #forget(): Promise<number> {
    const { store, wallTime } = this.#parts;
    this.#forgottenMs = wallTime();
    const beforeMs = this.#forgottenMs - this.#settings.retention_days * DAY_MS;
    await this.#stepByStep(() => store.forgetStep(beforeMs));
    return beforeMs;
  }

  /** While there is more to do; requests get their turn in between. */
  async #stepByStep(step: () => boolean): Promise<void> {
    while (!this.#stopped.signal.aborted && step()) await otherWork();
  }

  /** Never rejects. */
  #queue(work: () => Promise<unknown>): Promise<unknown> {
    this.#work = this.#work.then(work).catch((error: unknown) => this.#tell(error));
    return this.#work;
  }

  #tell(error: unknown): void {
    const reason = error instanceof StorageError ? error.message : String(error);
    // Once per trouble: attempts go on at every interval.
    if (this.#trouble === undefined) {
      this.#parts.log.warn({ reason }, "the metrics history cannot be written; requests are not concerned");
    }
    this.#trouble = reason;
  }

  #after(durationMs: number, callback: () => void): () => void {
    return (this.#parts.after ?? afterTimer)(durationMs, callback);
  }
}

function afterTimer(durationMs: number, callback: () => void): () => void {
  const timer = setTimeout(callback, durationMs);
  timer.unref();
  return () => clearTimeout(timer);
}
