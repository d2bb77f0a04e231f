// Keeps requests that are over on disk. They are gathered for a second, or until they fill a chunk, and written together off
// the path of requests, which never wait: what cannot be written waits, and of what is too much the number is kept.

import type { Settings } from "../config/sections/registry.ts";
import type { Clock } from "../lib/clock.ts";
import { otherWork } from "../lib/other-work.ts";
import { storageMessage } from "../lib/storage-message.ts";
import type { Logger } from "../logging/logger.ts";
import type { RequestRecord } from "../stats/request-record.ts";
import { ChunkBuilder } from "./chunk-builder.ts";
import { microseconds } from "./columns.ts";
import { RequestStore } from "./store.ts";

/** `path` is absolute. */
export type RequestLogSettings = Omit<Settings["admin"]["requests"], "enabled">;

interface RequestLogParts {
  settings: RequestLogSettings;
  clock: Clock;
  /** When a request came, in milliseconds since 1970. */
  startedAt(story: RequestRecord): number;
  log: Pick<Logger, "warn" | "info">;
  /** So many requests will not be found. */
  lost(count: number): void;
}

/** A process that is killed loses the requests of this time. */
const WRITE_AFTER_MS = 1_000;
/** A chunk of few requests takes further ones for so long: each write of it writes all of it. */
const OPEN_MS = 60_000;
const RETRY_AFTER_MS = 5_000;
const TEND_EVERY_MS = 60_000;

/** So many wait for a disk in trouble. */
const MOST_CHUNKS = 10;

interface GatheredChunk {
  id: number;
  sinceMs: number;
  builder: ChunkBuilder;
  /** How many of its requests are on disk. */
  written: number;
}

export class RequestLog {
  readonly store: RequestStore;
  readonly #parts: RequestLogParts;
  #settings: RequestLogSettings;
  /** The oldest first; the last one takes further requests. All others wait to be written. */
  #chunks: GatheredChunk[] = [];
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

  /** Runs for every request. */
  add(story: RequestRecord): void {
    const last = this.#chunks.at(-1);
    const chunk = last === undefined || last.builder.isFull ? this.#newChunk() : last;
    if (chunk === undefined) {
      this.#parts.lost(1);
      return;
    }
    chunk.builder.add(story, microseconds(this.#parts.startedAt(story)));
    this.#plan(chunk.builder.isFull);
  }

  /** Everything that is over is on disk when this returns, unless there is trouble with the disk. */
  flush(): void {
    while (this.#unwritten > 0 && this.#writeChunk());
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
      if (this.#unwritten === 0) this.#works();
    } catch (error) {
      this.#tell(error);
    }
  }

  stop(): void {
    clearInterval(this.#tending);
    clearTimeout(this.#timer);
    clearImmediate(this.#soon);
    this.flush();
    if (this.#unwritten > 0) this.#parts.lost(this.#unwritten);
    this.#isStopped = true;
    this.store.close();
  }

  get #unwritten(): number {
    return this.#chunks.reduce((sum, { builder, written }) => sum + builder.count - written, 0);
  }

  /** Undefined if too many chunks wait. */
  #newChunk(): GatheredChunk | undefined {
    if (this.#chunks.length >= MOST_CHUNKS) return undefined;
    const chunk = { id: this.#newId(), sinceMs: this.#parts.clock.now(), builder: new ChunkBuilder(), written: 0 };
    this.#chunks.push(chunk);
    return chunk;
  }

  /** One chunk; what is left has its turn later. */
  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#soon = undefined;
    this.#writeChunk();
    if (this.#unwritten > 0) this.#plan(this.#chunks[0]?.builder.isFull === true);
  }

  #plan(isUrgent: boolean): void {
    if (this.#trouble === undefined && isUrgent) this.#soon ??= setImmediate(() => this.#write());
    else this.#timer ??= setTimeout(() => this.#write(), this.#trouble === undefined ? WRITE_AFTER_MS : RETRY_AFTER_MS);
  }

  /** False if the chunk was not written. */
  #writeChunk(): boolean {
    const [chunk] = this.#chunks;
    if (chunk === undefined) return false;
    const { id, sinceMs, builder } = chunk;
    try {
      this.store.put(id, builder);
    } catch (error) {
      this.#tell(error);
      return false;
    }
    this.#works();
    chunk.written = builder.count;
    if (builder.isFull || this.#parts.clock.now() - sinceMs >= OPEN_MS) this.#chunks.shift();
    return true;
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
      await otherWork();
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
