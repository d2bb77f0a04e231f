// Keeps requests that are over on disk. They are gathered for a second, or until they fill a chunk, and written together off
// the path of requests, which never wait: what cannot be written waits, and of what is too much the number is kept.

import type { Settings } from "../config/sections/registry.ts";
import type { Clock } from "../lib/clock.ts";
import { storageMessage } from "../lib/storage-message.ts";
import type { Logger } from "../logging/logger.ts";
import type { Story } from "../stats/stories.ts";
import { type EndedRequest, microseconds, valuesOf } from "./chunk.ts";
import { RequestStore } from "./store.ts";

/** `path` is absolute. */
export type RequestLogSettings = Omit<Settings["admin"]["requests"], "enabled">;

interface RequestLogParts {
  settings: RequestLogSettings;
  clock: Clock;
  /** When a request came, in milliseconds since 1970. */
  startedAt(story: Story): number;
  log: Pick<Logger, "warn" | "info">;
  /** So many requests will not be found. */
  lost(count: number): void;
}

/** What is not written yet is what a killed process loses. */
const WRITE_AFTER_MS = 1_000;
/** A chunk of few requests takes further ones for so long: each write of it writes all of it. */
const OPEN_MS = 60_000;
const RETRY_AFTER_MS = 5_000;
const TEND_EVERY_MS = 60_000;

/** By what stories hold in memory, which bounds the work of one write: about 512 plain requests. */
const CHUNK_BYTES = 256 * 1024;
const MOST_WAITING_BYTES = 20 * CHUNK_BYTES;

export class RequestLog {
  readonly store: RequestStore;
  readonly #parts: RequestLogParts;
  #settings: RequestLogSettings;
  /** Of the chunk that is still open, and behind it; the oldest first. */
  #waiting: Story[] = [];
  #bytes = 0;
  /** How many of them the open chunk has on disk. */
  #written = 0;
  #chunk: { id: number; sinceMs: number } | undefined;
  #lastId = 0;
  #timer: Timer | undefined;
  #soon: NodeJS.Immediate | undefined;
  #tending: Timer | undefined;
  #isStopped = false;
  #trouble: string | undefined;

  constructor(parts: RequestLogParts) {
    const { settings, log } = parts;
    this.#parts = parts;
    this.#settings = settings;
    this.store = new RequestStore({ path: settings.path, log, maxBytes: settings.max_bytes });
  }

  /** Why nothing was written the last time; undefined when it was. */
  get problem(): string | undefined {
    return this.#trouble === undefined ? undefined : `${this.store.path} cannot be written: ${this.#trouble}`;
  }

  start(): void {
    this.#tending = setInterval(() => void this.tend(), TEND_EVERY_MS);
    this.#tending.unref();
  }

  /** On the path of every request. */
  add(story: Story): void {
    const { bytes } = story;
    if (this.#bytes + bytes > MOST_WAITING_BYTES) {
      this.#parts.lost(1);
      return;
    }
    this.#waiting.push(story);
    this.#bytes += bytes;
    this.#plan();
  }

  /** Everything that is over is on disk when this returns, unless there is trouble with the disk. */
  flush(): void {
    while (this.#written < this.#waiting.length && this.#writeChunk());
  }

  /** Retention and size; what else is different needs a restart. */
  apply(settings: RequestLogSettings): void {
    const isLess = settings.retention < this.#settings.retention;
    this.#settings = settings;
    try {
      this.store.maxBytes = settings.max_bytes;
    } catch {
      // Of a file that cannot be used: it has this limit when it is opened again.
    }
    if (isLess) void this.tend();
  }

  /** Forgets what is too old, and gives the space back; requests get their turn in between. */
  async tend(): Promise<void> {
    try {
      const beforeUs = (this.#parts.clock.wallTime() - this.#settings.retention) * 1000;
      const wasMuch = await this.#stepByStep(() => this.store.forgetStep(beforeUs));
      if (wasMuch) await this.#stepByStep(() => this.store.shrinkStep());
      if (this.#written === this.#waiting.length) this.#works();
    } catch (error) {
      this.#tell(error);
    }
  }

  stop(): void {
    clearInterval(this.#tending);
    clearTimeout(this.#timer);
    clearImmediate(this.#soon);
    this.flush();
    const left = this.#waiting.length - this.#written;
    if (left > 0) this.#parts.lost(left);
    this.#isStopped = true;
    this.store.close();
  }

  /** One chunk; what is left has its turn later. */
  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#soon = undefined;
    this.#writeChunk();
    if (this.#written < this.#waiting.length) this.#plan();
  }

  #plan(): void {
    if (this.#trouble === undefined && this.#bytes >= CHUNK_BYTES) this.#soon ??= setImmediate(() => this.#write());
    else this.#timer ??= setTimeout(() => this.#write(), this.#trouble === undefined ? WRITE_AFTER_MS : RETRY_AFTER_MS);
  }

  /** False: it was not written. */
  #writeChunk(): boolean {
    const nowMs = this.#parts.clock.now();
    if (this.#chunk !== undefined && nowMs - this.#chunk.sinceMs >= OPEN_MS) this.#closeChunk();
    const requests = this.#nextChunk();
    this.#chunk ??= { id: this.#newId(), sinceMs: nowMs };
    try {
      this.store.put(
        this.#chunk.id,
        requests.map((story) => this.#ended(story)),
      );
    } catch (error) {
      this.#tell(error);
      return false;
    }
    this.#works();
    this.#written = requests.length;
    if (requests.length < this.#waiting.length || this.#bytes >= CHUNK_BYTES) this.#closeChunk();
    return true;
  }

  #ended(story: Story): EndedRequest {
    return { story, cameUs: microseconds(this.#parts.startedAt(story)), values: valuesOf(story) };
  }

  /** The requests of the open chunk, and as many behind them as it takes; all of them where that is not much more. */
  #nextChunk(): readonly Story[] {
    if (this.#bytes < 2 * CHUNK_BYTES) return this.#waiting;
    let bytes = 0;
    const end = this.#waiting.findIndex((story) => {
      bytes += story.bytes;
      return bytes > CHUNK_BYTES;
    });
    return end < 0 ? this.#waiting : this.#waiting.slice(0, Math.max(1, end));
  }

  #closeChunk(): void {
    this.#waiting = this.#waiting.slice(this.#written);
    this.#bytes = this.#waiting.reduce((sum, { bytes }) => sum + bytes, 0);
    this.#written = 0;
    this.#chunk = undefined;
  }

  /** The time, so that no chunk of another process, in a file that was put in the place of this one, is overwritten. */
  #newId(): number {
    this.#lastId = Math.max(this.#lastId + 1, Math.floor(this.#parts.clock.wallTime() * 1000));
    return this.#lastId;
  }

  /** While there is more to do. True: something was done. */
  async #stepByStep(step: () => boolean): Promise<boolean> {
    let steps = 0;
    while (!this.#isStopped && step()) {
      steps++;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    return steps > 0;
  }

  #works(): void {
    if (this.#trouble !== undefined) this.#parts.log.info({}, "the log of requests is written again");
    this.#trouble = undefined;
  }

  #tell(error: unknown): void {
    const reason = storageMessage(error instanceof Error ? (error.cause ?? error) : error);
    // Once per trouble: attempts go on.
    if (this.#trouble === undefined) {
      this.#parts.log.warn({ path: this.store.path, reason }, "the log of requests cannot be written; requests go on");
    }
    this.#trouble = reason;
  }
}
