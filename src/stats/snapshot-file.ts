// Statistics that survive a restart: written to a file now and then and at the end, read once at the start
// (specification, "Admin API: statistics"). Trouble with the file never concerns a request.

import { mkdir, readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { replaceFile } from "../lib/replace-file.ts";
import type { Logger } from "../logging/logger.ts";
import type { StatsCollector, WrittenRow, WrittenStats } from "./collector.ts";
import type { WrittenCosts } from "./costs.ts";

/** Section admin.stats.persistence; durations in milliseconds. */
export interface SnapshotSettings {
  enabled: boolean;
  /** Absolute. */
  path: string;
  snapshot_interval: number;
  /** A file older than this is not taken up; 0 = any age will do. */
  max_age: number;
}

export interface SnapshotParts {
  settings: SnapshotSettings;
  collector: StatsCollector;
  log: Logger;
  wallTime(): number;
}

const FORMAT = 1;
const ROWS_PER_STEP = 8;
const MAX_FILE_BYTES = 128 * 1024 * 1024;

const count = z.number().min(-1);
const sums = z.array(z.array(count).max(9)).max(1_000);
const latencies = z.array(z.array(count).max(10_000)).max(1_000);
const row = z.strictObject({ name: z.string().min(1).max(256), last_used: count, sums });
const backendRow = row.extend({ latencies: latencies.optional(), first_tokens: latencies.optional() });

const costRow = z.strictObject({
  key_id: z.string(),
  user_id: z.string(),
  organization_id: z.string(),
  model_id: z.string(),
  backend_name: z.string(),
  requests: count,
  prompt_tokens: count,
  completion_tokens: count,
  cached_tokens: count,
  cost: count,
});

const snapshotSchema = z.object({
  format: z.literal(FORMAT),
  saved_at: z.number(),
  stats: z.strictObject({
    overall: sums,
    latencies,
    models: z.array(row).max(10_000),
    backends: z.array(backendRow).max(10_000),
    costs: z
      .array(
        z.strictObject({
          key_id: z.string(),
          model_id: z.string(),
          requests: count,
          prompt_tokens: count,
          completion_tokens: count,
          cost: count,
        }),
      )
      .max(10_000),
    cost_history: z
      .array(z.strictObject({ from: count, to: count, rows: z.array(costRow).max(2_000) }))
      .max(1_000)
      .optional(),
  }),
});

export type RestoreResult = "restored" | "missing" | "corrupt" | "stale" | "disabled";

export class SnapshotFile {
  readonly #parts: SnapshotParts;
  #settings: SnapshotSettings;
  #timer: ReturnType<typeof setInterval> | undefined;
  /** Writes happen one after the other. */
  #writing: Promise<void> = Promise.resolve();
  #trouble: string | undefined;

  constructor(parts: SnapshotParts) {
    this.#parts = parts;
    this.#settings = parts.settings;
  }

  /** Why the last snapshot could not be written; undefined when it was. */
  get problem(): string | undefined {
    return this.#trouble === undefined ? undefined : `${this.#settings.path} cannot be written: ${this.#trouble}`;
  }

  /** Reads the file, before the first request is counted. A file that is no good is told of in the log, and left. */
  async restore(): Promise<RestoreResult> {
    const { collector, log, wallTime } = this.#parts;
    const { enabled, path, max_age } = this.#settings;
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
      collector.restore(stats satisfies WrittenStats);
      return "restored";
    } catch (error) {
      if (codeOf(error) === "ENOENT") return "missing";
      log.warn({ path, reason: reasonOf(error) }, "the saved statistics cannot be read: counting anew");
      return "corrupt";
    }
  }

  start(): void {
    clearInterval(this.#timer);
    if (!this.#settings.enabled) return;
    this.#timer = setInterval(() => void this.save(), this.#settings.snapshot_interval);
    this.#timer.unref();
  }

  apply(settings: SnapshotSettings): void {
    const isNewTimer =
      settings.enabled !== this.#settings.enabled || settings.snapshot_interval !== this.#settings.snapshot_interval;
    this.#settings = settings;
    if (isNewTimer) this.start();
  }

  /** Never throws. False: not written, and the log says why. */
  async save(): Promise<boolean> {
    if (!this.#settings.enabled) return false;
    let isSaved = false;
    const { path } = this.#settings;
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
