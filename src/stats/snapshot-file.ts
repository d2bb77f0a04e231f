// Statistics that survive a restart: written to a file now and then and at the end, read once at the start
// (specification, "Admin API: statistics"). Trouble with the file never concerns a request.

import { mkdir, readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import type { Settings } from "../config/sections/registry.ts";
import { replaceFile } from "../lib/replace-file.ts";
import type { Logger } from "../logging/logger.ts";
import type { StatsCollector } from "./collector.ts";
import { type WrittenCosts, type WrittenRow, writtenStats } from "./written-stats.ts";

interface SnapshotParts {
  /** The path is absolute. */
  settings: Settings["admin"]["stats"]["persistence"];
  collector: StatsCollector;
  log: Logger;
  wallTime(): number;
}

const FORMAT = 1;
const ROWS_PER_STEP = 8;
const MAX_FILE_BYTES = 128 * 1024 * 1024;

const snapshotSchema = z.object({ format: z.literal(FORMAT), saved_at: z.number(), stats: writtenStats });

export class SnapshotFile {
  readonly #parts: SnapshotParts;
  #timer: ReturnType<typeof setInterval> | undefined;
  /** Writes happen one after the other. */
  #writing: Promise<void> = Promise.resolve();
  #trouble: string | undefined;

  constructor(parts: SnapshotParts) {
    this.#parts = parts;
  }

  /** Why the last snapshot could not be written; undefined when it was. */
  get problem(): string | undefined {
    return this.#trouble === undefined ? undefined : `${this.#parts.settings.path} cannot be written: ${this.#trouble}`;
  }

  /** Reads the file, before the first request is counted. A file that is no good is told of in the log, and left. */
  async restore(): Promise<"restored" | "missing" | "corrupt" | "stale" | "disabled"> {
    const { collector, log, wallTime, settings } = this.#parts;
    const { enabled, path, max_age } = settings;
    if (!enabled) return "disabled";
    try {
      const { size } = await stat(path);
      if (size > MAX_FILE_BYTES) throw new Error(`larger than ${MAX_FILE_BYTES} bytes`);
      const text = await readFile(path, "utf8");
      const { saved_at, stats } = snapshotSchema.parse(JSON.parse(text));
      if (max_age > 0 && wallTime() - saved_at > max_age) {
        log.info({ path }, "the saved statistics are older than admin.stats.persistence.max_age: counting anew");
        return "stale";
      }
      collector.restore(stats);
      return "restored";
    } catch (error) {
      if (codeOf(error) === "ENOENT") return "missing";
      log.warn({ path, reason: reasonOf(error) }, "the saved statistics cannot be read: counting anew");
      return "corrupt";
    }
  }

  start(): void {
    const { enabled, snapshot_interval } = this.#parts.settings;
    if (!enabled) return;
    this.#timer = setInterval(() => void this.save(), snapshot_interval);
    this.#timer.unref();
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
    await this.save();
  }

  async #write(path: string): Promise<boolean> {
    const { collector, log, wallTime } = this.#parts;
    try {
      const text = await snapshotText(collector, wallTime());
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      if (!(await mayReplace(path)))
        throw new Error("it is no snapshot of statistics; remove it, or name another file");
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

/** How every snapshot begins, whatever its version. */
const BEGINNING = '{"format":';

/** Nothing that somebody else has written is overwritten because of a wrong path. */
async function mayReplace(path: string): Promise<boolean> {
  const file = Bun.file(path);
  if (!(await file.exists())) return (await stat(path).catch(() => undefined)) === undefined;
  const beginning = await file.slice(0, BEGINNING.length).text();
  return beginning === "" || beginning === BEGINNING;
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
    if (texts.length % ROWS_PER_STEP === 0) await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return texts.join(",");
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}

/** What is in the file is not shown. */
function reasonOf(error: unknown): string {
  if (error instanceof z.ZodError) return "not a snapshot of this version";
  return codeOf(error) ?? (error instanceof SyntaxError ? "not JSON" : error instanceof Error ? error.message : "");
}
