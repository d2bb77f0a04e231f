// The store of batches: their rows, a folder for each that is not finished, and what runs them.

import { mkdirSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { reasonOf } from "../files/storage-trouble.ts";
import { whenFree } from "../lib/durable-database.ts";
import { openSoleLock } from "../lib/sole-lock.ts";
import { openBatchRows } from "./batch-rows.ts";
import { type AllBatches, FaultyInput, hasEnded, type StoredBatch } from "./batch-store.ts";
import { batchTrouble, guarded } from "./batch-trouble.ts";
import type { WorkPlace } from "./batch-work.ts";
import { BATCH_FORMATS } from "./formats.ts";
import { openLocalWork } from "./local-work.ts";
import { cannotCancel, newBatch, newId, tooManyOpen } from "./new-batch.ts";
import { createPatience, type Patience } from "./patience.ts";
import { createRunner, type Runner, type RunnerParts } from "./runner.ts";
import { takeIn, UnreadableInput } from "./take-in.ts";

export const DATABASE_NAME = "batches.db";
export const LOCK_NAME = "batches.lock";
const LOCK_INTERVAL_MS = 500;
const EXPIRY_INTERVAL_MS = 60_000;

type BatchLog = RunnerParts["log"] & Parameters<typeof createPatience>[0];

export interface BatchStoreParts
  extends Pick<RunnerParts, "settings" | "wallTime" | "files" | "ask" | "counted" | "vendors"> {
  folder: string;
  log: BatchLog;
}

export interface OpenBatches extends AllBatches {
  /** Those of all owners that are not finished. */
  openCount(): number;
  /** Begins no further line. */
  closing(): void;
  close(withinMs: number): Promise<void>;
}

/** Throws what file system and SQLite throw, when the folder cannot be used. */
export function openBatches(parts: BatchStoreParts): OpenBatches {
  const { folder, settings, wallTime, log } = parts;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const rows = openBatchRows(join(folder, DATABASE_NAME));
  const lock = openSoleLock(join(folder, LOCK_NAME));
  const now = () => Math.floor(wallTime() / 1000);
  const update = (batch: StoredBatch) => rows.update(batch, now());
  let runner: Runner | undefined;
  let isClosing = false;
  /** Ids of batches whose lines arrive. */
  const arriving = new Set<string>();

  /** One process runs the batches of a folder: another one that shares it goes on when that has ended. */
  function run(): void {
    if (runner !== undefined || isClosing || !lock.take()) return;
    clearInterval(waiting);
    void removeLeftovers().catch((error) => {
      log.warn({ reason: reasonOf(error) }, "what unfinished requests for batches have left could not be removed");
    });
    const patience = createPatience(log);
    runner = createRunner({ ...parts, place: localPlace(folder, patience), rows: { ...rows, update }, patience });
  }
  const waiting = setInterval(run, LOCK_INTERVAL_MS);
  waiting.unref();
  run();

  const expiry = setInterval(() => {
    try {
      rows.removeEnded(now() - Math.ceil(settings().retention / 1000));
    } catch (error) {
      log.warn({ reason: reasonOf(error) }, "batches whose time is over could not be removed");
    }
  }, EXPIRY_INTERVAL_MS);
  expiry.unref();

  /** One under way has newer counts than its row. */
  const asOfNow = (batch: StoredBatch) => runner?.find(batch.id) ?? batch;

  function findNow(owner: string, id: string): StoredBatch | undefined {
    const batch = guarded(() => rows.find(owner, id));
    return batch && asOfNow(batch);
  }

  async function written<Result>(work: () => Result): Promise<Result> {
    try {
      return await whenFree(work);
    } catch (error) {
      throw batchTrouble(error);
    }
  }

  /** Lines of batches that never came to be: a crash was quicker. */
  async function removeLeftovers(): Promise<void> {
    const folders = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    for (const { name } of folders) {
      if (!arriving.has(name) && !rows.isKnown(name)) await rm(join(folder, name), { recursive: true, force: true });
    }
  }

  async function insert(batch: StoredBatch): Promise<StoredBatch> {
    const { max_open } = settings();
    if (!(await written(() => rows.insert(batch, max_open)))) throw tooManyOpen(max_open);
    runner?.activate(batch, false);
    return { ...batch };
  }

  return {
    create: (facts) => insert(newBatch(facts, now())),
    async createOf(facts, lines) {
      const { max_open, max_lines: maxLines } = settings();
      if (guarded(() => rows.openOf(facts.owner)) >= max_open) throw tooManyOpen(max_open);
      const id = newId(facts);
      const place = join(folder, id);
      arriving.add(id);
      try {
        const format = BATCH_FORMATS[facts.format];
        const { total, model, faults } = await takeIn(lines, {
          format,
          maxLines,
          folder: place,
          endpoint: facts.endpoint,
        });
        const [fault] = faults;
        if (fault !== undefined) throw new FaultyInput(fault);
        const at = now();
        return await insert({ ...newBatch(facts, at), id, total, model, status: "in_progress", inProgressAt: at });
      } catch (error) {
        await rm(place, { recursive: true, force: true }).catch(() => {}); // the next start tries again
        if (error instanceof FaultyInput) throw error;
        throw batchTrouble(error instanceof UnreadableInput ? error.cause : error);
      } finally {
        arriving.delete(id);
      }
    },
    find: async (owner, id) => findNow(owner, id),
    async list(owner, query) {
      const { batches, hasMore } = guarded(() => rows.list(owner, query));
      return { batches: batches.map(asOfNow), hasMore };
    },
    async listAll(query) {
      const { batches, hasMore } = guarded(() => rows.listAll(query));
      return { batches: batches.map(asOfNow), hasMore };
    },
    async findAny(id) {
      const batch = guarded(() => rows.findAny(id));
      return batch && asOfNow(batch);
    },
    async cancel(owner, id) {
      const found = findNow(owner, id);
      if (found === undefined || found.status === "cancelling" || found.status === "cancelled") return found;
      if (hasEnded(found) || found.status === "finalizing") throw cannotCancel(found);
      const run = runner?.activate(found, true, true);
      if (run === undefined) throw batchTrouble(new Error("another process runs the batches"));
      const { batch } = run;
      const { status } = batch;
      Object.assign(batch, { status: "cancelling", cancellingAt: now() });
      try {
        await written(() => update(batch));
      } catch (error) {
        Object.assign(batch, { status, cancellingAt: undefined });
        throw error;
      }
      run.end("cancelled");
      return { ...batch };
    },
    async remove(owner, id) {
      const found = findNow(owner, id);
      if (found === undefined) return false;
      if (found.outputFileId !== undefined) {
        const resultsOwner = BATCH_FORMATS[found.format].resultsOwner(owner);
        await (await parts.files.inUse())?.delete(resultsOwner, found.outputFileId);
      }
      return await written(() => rows.remove(owner, id));
    },
    openCount: rows.openCount,
    closing: () => runner?.closing(),
    async close(withinMs) {
      isClosing = true;
      clearInterval(waiting);
      clearInterval(expiry);
      await runner?.stop(withinMs);
      lock.release();
      rows.close();
    },
  };
}

function localPlace(folder: string, patience: Patience): WorkPlace {
  const folderOf = ({ id }: StoredBatch) => join(folder, id);
  return {
    takeIn: (batch, input, given) => takeIn(input, { ...given, endpoint: batch.endpoint, folder: folderOf(batch) }),
    open: (batch) => openLocalWork(folderOf(batch), batch.total, patience),
    remove: (batch) => rm(folderOf(batch), { recursive: true, force: true }),
    alone: (_batch, _step, task) => task(),
  };
}
