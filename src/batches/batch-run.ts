// One batch under way: which of its lines are asked, which wait to be asked again, and whether it is over.

import type { BatchLine, LineAnswer, StoredBatch } from "./batch-store.ts";
import type { BatchWork } from "./batch-work.ts";
import type { VendorDesk } from "./vendor/vendor-desk.ts";

/** Lines that wait, while further ones are begun: so many at most. */
const MAX_RETURNED = 256;
/** Asked so often where a backend fails that cannot be told to be down: the line itself may be what it fails at. */
const MAX_FAILED_ASKS = 3;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** An operator may raise a limit in the meantime. */
const LONGEST_RETRY_AFTER_MS = 300_000;
/** Before lines are looked for again that other gateways have. */
const LATER_MS = 500;

/** A line that was asked, and is to be asked again. */
interface ReturnedLine extends BatchLine {
  asks: number;
  /** Those at which a backend failed. */
  failures: number;
  notBeforeMs: number;
}

export class BatchRun {
  readonly batch: StoredBatch;
  /** An earlier process began it, or an earlier moment of this one. */
  readonly isRecovered: boolean;
  /** Resolves when every line has its result, or the run has ended; rejects where lines cannot be had any more. */
  readonly asked: Promise<void>;
  over: Promise<void> = Promise.resolve();
  /** Lines under way, or about to be. */
  asking = 0;
  #work: BatchWork | undefined;
  /** What vendors answer by batches of theirs; undefined: nothing. */
  desk: VendorDesk | undefined;
  readonly #ended = new AbortController();
  /** One for each line, so that none leaves a listener behind. */
  readonly #lines = new Set<AbortController>();
  #returned: ReturnedLine[] = [];
  /** Every line has been handed out. */
  #isDry = false;
  #pausedUntilMs = 0;
  #noNewUntilMs = 0;
  /** Returned and new lines take turns, so that lines that are always refused do not keep others back. */
  #isTurnOfNew = false;
  #isAsked: () => void = () => {};
  #isBroken: (error: unknown) => void = () => {};
  #isIdle: (() => void) | undefined;

  constructor(batch: StoredBatch, isRecovered: boolean) {
    this.batch = batch;
    this.isRecovered = isRecovered;
    this.asked = new Promise((resolve, reject) => {
      this.#isAsked = resolve;
      this.#isBroken = reject;
    });
    this.asked.catch(() => {}); // the run may not wait for it any more
  }

  get work(): BatchWork | undefined {
    return this.#work;
  }

  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  use(work: BatchWork): void {
    this.#work = work;
    this.count();
  }

  /** Breaks lines under way off. */
  end(reason: "expired" | "cancelled" | "stopped"): void {
    if (this.ended.aborted) return;
    this.#ended.abort(reason);
    this.desk?.end(reason);
    for (const line of this.#lines) line.abort(reason);
    this.look();
  }

  mayAsk(nowMs: number): boolean {
    if (this.#work === undefined || this.batch.status !== "in_progress" || this.ended.aborted) return false;
    if (nowMs < this.#pausedUntilMs) return false;
    return this.#mayAskNew(nowMs) || this.#returned.some(({ notBeforeMs }) => notBeforeMs <= nowMs);
  }

  /** A line whose time has come to be asked again. */
  takeReturned(nowMs: number): ReturnedLine | undefined {
    this.#isTurnOfNew = !this.#isTurnOfNew;
    if (this.#isTurnOfNew && this.#mayAskNew(nowMs)) return undefined;
    const index = this.#returned.findIndex(({ notBeforeMs }) => notBeforeMs <= nowMs);
    return index < 0 ? undefined : this.#returned.splice(index, 1)[0];
  }

  async takeNew(nowMs: number): Promise<BatchLine | undefined> {
    if (!this.#mayAskNew(nowMs)) return undefined;
    const released = await this.desk?.nextReleased();
    if (released !== undefined || this.#isDry) return released;
    const line = await this.#work?.next().catch((error) => {
      this.#isBroken(error);
      throw error;
    });
    if (line === undefined) this.#isDry = true;
    if (line !== "later") return line;
    this.#noNewUntilMs = nowMs + LATER_MS;
    return undefined;
  }

  /** The result of the work; undefined where it was broken off. */
  async during(ask: (signal: AbortSignal) => Promise<LineAnswer>): Promise<LineAnswer | undefined> {
    if (this.ended.aborted) return undefined;
    const line = new AbortController();
    this.#lines.add(line);
    try {
      const answer = await ask(line.signal);
      return line.signal.aborted && answer.status >= 400 ? undefined : answer;
    } catch (error) {
      if (line.signal.aborted) return undefined;
      throw error;
    } finally {
      this.#lines.delete(line);
    }
  }

  /** True where the answer is no result: the line is asked again later. */
  mustWait(line: BatchLine & Partial<ReturnedLine>, answer: LineAnswer, nowMs: number): boolean {
    const { status, isOutage, retryAfterMs } = answer;
    const asks = (line.asks ?? 0) + 1;
    // A backend's own 5xx is an outage as well, but the line may be what it fails at.
    const isRefusedForNow = status === 429 || status === 503 || (isOutage && status < 500);
    const failures = (line.failures ?? 0) + (isRefusedForNow ? 0 : 1);
    if (!isRefusedForNow && (status < 500 || failures >= MAX_FAILED_ASKS)) return false;
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(asks - 1, 16), LONGEST_PAUSE_MS);
    const notBeforeMs = nowMs + Math.min(retryAfterMs ?? pauseMs, LONGEST_RETRY_AFTER_MS);
    this.#returned.push({ ...line, asks, failures, notBeforeMs });
    // Limits and budgets are those of the caller: they refuse its other lines as well.
    if (status === 429) this.#pausedUntilMs = Math.max(this.#pausedUntilMs, notBeforeMs);
    return true;
  }

  settled(): void {
    this.count();
  }

  /** Brings the counts of the batch up to date. */
  count(): void {
    if (this.#work === undefined) return;
    const { completed, failed, sums } = this.#work.done;
    Object.assign(this.batch, { completed, failed, sums: { ...sums } });
  }

  /** To be called when a line is no longer under way. */
  look(): void {
    if (this.asking > 0) return;
    this.#isIdle?.();
    const isDone = this.#isDry && this.#returned.length === 0;
    if (isDone) this.desk?.flush();
    if (this.ended.aborted || (isDone && this.desk?.isBusy !== true)) this.#isAsked();
  }

  /** Resolves when no line is under way. */
  idle(): Promise<void> {
    if (this.asking === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const others = this.#isIdle;
      this.#isIdle = () => {
        others?.();
        resolve();
      };
    });
  }

  #mayAskNew(nowMs: number): boolean {
    const hasMore = !this.#isDry || this.desk?.hasReleased === true;
    return hasMore && nowMs >= this.#noNewUntilMs && this.#returned.length < MAX_RETURNED;
  }
}
