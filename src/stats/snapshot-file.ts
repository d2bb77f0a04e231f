// Statistics that survive a restart: written to a file now and then and at the end, read once at the start.
// Costs and totals are never discarded: a file that cannot be read is set aside.
// Trouble with the file never concerns a request.

import { mkdir, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import type { Settings } from "../config/sections/registry.ts";
import { otherWork } from "../lib/other-work.ts";
import { replaceFile } from "../lib/replace-file.ts";
import type { Logger } from "../logging/logger.ts";
import type { StatsCollector } from "./collector.ts";
import { answerRequests } from "./snapshot-request.ts";
import { type WrittenCosts, type WrittenRow, writtenStats } from "./written-stats.ts";

interface SnapshotParts {
  /** The path is absolute. */
  settings: Settings["admin"]["stats"]["persistence"];
  collector: StatsCollector;
  log: Pick<Logger, "info" | "warn">;
  wallTime(): number;
}

const FORMAT = 1;
const ROWS_PER_STEP = 8;
/** Above the largest file that the bounds of the collector allow. */
const MAX_FILE_BYTES = 512 * 1024 * 1024;
const MAX_UNREADABLE_FILES = 5;

const snapshotSchema = z.object({ format: z.literal(FORMAT), saved_at: z.number(), stats: writtenStats });

export class SnapshotFile {
  readonly #parts: SnapshotParts;
  #timer: ReturnType<typeof setInterval> | undefined;
  #ignoreRequests: () => void = () => {};
  /** Writes happen one after the other. */
  #writing: Promise<void> = Promise.resolve();
  #trouble: string | undefined;
  /** There is a file that could not be read, and it is still in the way. */
  #isUnreadable = false;

  constructor(parts: SnapshotParts) {
    this.#parts = parts;
  }

  /** Why the last snapshot could not be written; undefined when it was. */
  get problem(): string | undefined {
    return this.#trouble === undefined ? undefined : `${this.#parts.settings.path} cannot be written: ${this.#trouble}`;
  }

  /** Reads the file, before the first request is counted. Windows of a file older than max_age begin again. */
  async restore(): Promise<"restored" | "missing" | "unreadable" | "disabled"> {
    const { collector, log, wallTime, settings } = this.#parts;
    const { enabled, path, max_age } = settings;
    if (!enabled) return "disabled";
    try {
      const { size } = await stat(path);
      if (size > MAX_FILE_BYTES) throw new Error(`larger than ${MAX_FILE_BYTES} bytes`);
      const { saved_at, stats } = snapshotSchema.parse(JSON.parse(withoutMark(await readFile(path, "utf8"))));
      const isOld = max_age > 0 && wallTime() - saved_at > max_age;
      if (isOld)
        log.info({ path }, "the saved statistics are older than admin.stats.persistence.max_age: windows begin again");
      collector.restore(stats, !isOld);
      return "restored";
    } catch (error) {
      if (codeOf(error) === "ENOENT") return "missing";
      log.warn({ path, reason: reasonOf(error) }, "the saved statistics cannot be read: counting from zero");
      this.#isUnreadable = true;
      await this.#setAside().catch(() => {}); // tried again before every write, and told there
      return "unreadable";
    }
  }

  start(): void {
    const { enabled, snapshot_interval } = this.#parts.settings;
    if (!enabled) return;
    this.#timer = setInterval(() => void this.save(), snapshot_interval);
    this.#timer.unref();
    this.#ignoreRequests = answerRequests(this.#parts.settings.path, () => this.save());
  }

  /** Never throws. False: not written, and the log says why. */
  async save(): Promise<boolean> {
    const { enabled, path } = this.#parts.settings;
    if (!enabled) return false;
    let isSaved = false;
    this.#writing = this.#writing.then(async () => {
      isSaved = await this.#write(path);
    });
    await this.#writing;
    return isSaved;
  }

  /** The last snapshot, at a graceful end. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#ignoreRequests();
    await this.save();
  }

  /** Runs before anything is written. */
  async #setAside(): Promise<void> {
    if (!this.#isUnreadable) return;
    const { log, settings } = this.#parts;
    const { path } = settings;
    const kept_as = await renameUnreadable(path);
    this.#isUnreadable = false;
    if (kept_as !== undefined) log.warn({ path, kept_as }, "the unreadable statistics are kept under another name");
  }

  async #write(path: string): Promise<boolean> {
    const { collector, log, wallTime } = this.#parts;
    try {
      const text = await snapshotText(collector, wallTime());
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await this.#setAside();
      await replaceFile(path, text, 0o600);
      if (this.#trouble !== undefined) log.info({ path }, "the statistics are saved again");
      this.#trouble = undefined;
      return true;
    } catch (error) {
      const reason = reasonOf(error);
      // Once per trouble: the next attempts come at every interval.
      if (this.#trouble === undefined) log.warn({ path, reason }, "the statistics cannot be saved");
      this.#trouble = reason;
      return false;
    }
  }
}

const UNREADABLE = ".unreadable-";

/** Resolves with the new name; undefined when the file is gone. Of many such files the largest are kept: they hold the most. */
async function renameUnreadable(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return undefined;
  if (!found.isFile()) throw new Error("it is no file; remove it, or name another path");
  const number = 1 + Math.max(0, ...(await unreadableFiles(path)).map((file) => file.number));
  const renamed = `${path}${UNREADABLE}${number}`;
  await rename(path, renamed);
  const bySize = (await unreadableFiles(path)).toSorted((a, b) => b.bytes - a.bytes || b.number - a.number);
  for (const file of bySize.slice(MAX_UNREADABLE_FILES)) await rm(file.path, { force: true });
  return renamed;
}

async function unreadableFiles(path: string) {
  const beginning = basename(path) + UNREADABLE;
  const names = (await readdir(dirname(path))).filter((name) => name.startsWith(beginning));
  return await Promise.all(
    names.map(async (name) => {
      const file = join(dirname(path), name);
      return { path: file, number: Number(name.slice(beginning.length)) || 0, bytes: (await stat(file)).size };
    }),
  );
}

/** Some editors write a byte order mark. */
function withoutMark(text: string): string {
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}

/** Written row by row: many models would hold the event loop for too long in one go. */
async function snapshotText(collector: StatsCollector, savedAtMs: number): Promise<string> {
  const head = JSON.stringify({ format: FORMAT, saved_at: savedAtMs, stats: collector.write() });
  const models = await rowsText(collector.writeModels());
  const backends = await rowsText(collector.writeBackends());
  const costs = await rowsText(collector.writeCosts());
  return `${head.slice(0, -2)},"models":[${models}],"backends":[${backends}],"cost_history":[${costs}]}}`;
}

async function rowsText(written: Iterable<WrittenRow | WrittenCosts>): Promise<string> {
  const texts: string[] = [];
  for (const row of written) {
    texts.push(JSON.stringify(row));
    if (texts.length % ROWS_PER_STEP === 0) await otherWork();
  }
  return texts.join(",");
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}

/** Shows nothing of the file's content. */
function reasonOf(error: unknown): string {
  if (error instanceof z.ZodError) return "not a snapshot of this version";
  return codeOf(error) ?? (error instanceof SyntaxError ? "not JSON" : error instanceof Error ? error.message : "");
}
