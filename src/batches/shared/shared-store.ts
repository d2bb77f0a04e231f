// The store of batches that several gateways run together: rows and the state of the work in Redis, lines and results in the bucket
// of the files.

import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Settings } from "../../config/sections/registry.ts";
import { reasonOf } from "../../files/storage-trouble.ts";
import { inTime } from "../../lib/abortable-delay.ts";
import { openSoleLock } from "../../lib/sole-lock.ts";
import { openBatchRows } from "../batch-rows.ts";
import type { BatchRun } from "../batch-run.ts";
import { FaultyInput, hasEnded, type StoredBatch } from "../batch-store.ts";
import { batchTrouble } from "../batch-trouble.ts";
import { BATCH_FORMATS } from "../formats.ts";
import { cannotCancel, newBatch, newId, tooManyOpen } from "../new-batch.ts";
import { createPatience } from "../patience.ts";
import { createRunner, type Runner } from "../runner.ts";
import { type BatchStoreParts, DATABASE_NAME, LOCK_NAME, type OpenBatches } from "../store.ts";
import { UnreadableInput } from "../take-in.ts";
import { createBatchObjects, dataOf } from "./objects.ts";
import { restoreBatches } from "./restore.ts";
import { type BatchServerParts, createBatchServer } from "./server.ts";
import { become, createSharedPlace } from "./shared-place.ts";
import { createSharedRows, LostLease, type SharedRow } from "./shared-rows.ts";

const FOLDER_NAME = "shared";
/** The oldest open batches, which gateways work at. */
const MOST_FOLLOWED = 256;
const BEAT_MS = 500;
const LOCK_INTERVAL_MS = 500;
const EXPIRY_INTERVAL_MS = 60_000;
/** A request for a batch waits so long while batches are restored. */
const READY_MS = 5_000;
/** A batch that other gateways change all the time is not cancelled by this request. */
const CANCEL_ATTEMPTS = 10;

interface SharedBatchParts extends BatchStoreParts, BatchServerParts {
  bucket: Settings["files"]["s3"];
}

/** Throws what file system and SQLite throw, when the folder cannot be used. */
export function openSharedBatches(parts: SharedBatchParts): OpenBatches {
  const { settings, wallTime, log } = parts;
  const spools = join(parts.folder, FOLDER_NAME);
  const folder = join(spools, crypto.randomUUID());
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const lock = openSoleLock(join(parts.folder, LOCK_NAME));
  const server = createBatchServer(parts);
  const objects = createBatchObjects(parts.bucket);
  const rows = createSharedRows(server, objects);
  const patience = createPatience(log);
  const place = createSharedPlace({ folder, rows, server, objects, patience, log });
  const now = () => Math.floor(wallTime() / 1000);
  const { promise: isReady, resolve: ready } = Promise.withResolvers<void>();
  let runner: Runner | undefined;
  let isClosed = false;
  let openCount = 0;
  /** Versions of the rows that runs have. */
  const versions = new Map<string, string>();

  /** One process of a data folder runs batches. */
  function run(): void {
    if (runner !== undefined || isClosed || !lock.take()) return;
    clearInterval(waiting);
    void removeLeftovers().catch((error) => {
      log.warn({ reason: reasonOf(error) }, "what unfinished requests for batches have left could not be removed");
    });
    // Batches are found by the beat.
    runner = createRunner({ ...parts, place, patience, rows: { open: () => [], update } });
  }
  const waiting = setInterval(run, LOCK_INTERVAL_MS);
  waiting.unref();
  run();

  async function update(batch: StoredBatch): Promise<void> {
    const token = place.leaseOf(batch.id);
    if (token === undefined) throw new LostLease("the batch is not this gateway's");
    await rows.update(batch, token, now());
  }

  /** Of an earlier process: copies of segments, and lines of batches that never came to be. */
  async function removeLeftovers(): Promise<void> {
    tellOfLocalBatches(parts);
    await isReady;
    for (const spool of readdirSync(spools)) {
      const left = join(spools, spool);
      if (left === folder) continue;
      for (const id of readdirSync(left)) {
        const row = await patience.until(() => rows.read(id));
        if (row === undefined) await patience.until(() => objects.removeAll(dataOf(id)));
      }
      await rm(left, { recursive: true, force: true });
    }
  }

  /** Follows what other gateways have made of the batches. */
  async function beat(): Promise<void> {
    const told = await rows.beat(MOST_FOLLOWED);
    if (!told.isReady) {
      if (await restoreBatches({ server, objects, log })) ready();
      return;
    }
    ready();
    openCount = told.count;
    if (runner === undefined) return;
    await place.renew();
    const open = new Set(told.open.map(({ id }) => id));
    for (const { id, version, isClosing, counts } of told.open) {
      const isKnown = runner.find(id) !== undefined && versions.get(id) === version;
      if (isKnown && !isClosing) place.count(id, counts);
      else await look(runner, id);
    }
    for (const id of runner.ids()) if (!open.has(id)) await look(runner, id);
    for (const id of versions.keys()) if (!open.has(id)) versions.delete(id);
  }

  async function look(runner: Runner, id: string): Promise<void> {
    const row = await rows.read(id);
    if (row === undefined || hasEnded(row.batch)) {
      const known = runner.find(id);
      if (known === undefined || place.leaseOf(id) !== undefined) return;
      runner.activate(known, true)?.end("stopped");
      return;
    }
    versions.set(id, row.version);
    const run = runner.activate(row.batch, true);
    if (run !== undefined) follow(run, row);
  }

  function follow(run: BatchRun, { batch, isClosing }: SharedRow): void {
    const isMine = place.leaseOf(batch.id) !== undefined;
    const isCancelled = batch.status === "cancelling" && !run.ended.aborted;
    if (!isMine || isCancelled) become(run.batch, batch);
    if (isCancelled) run.end("cancelled");
    else if (!isMine && (isClosing || batch.status === "finalizing")) run.end("expired");
  }

  let beating: Promise<void> = Promise.resolve();
  let timer: Timer;
  /** The last beat has failed; only the first one of several is logged. */
  let isTroubled = false;
  function beatOn(): void {
    beating = beat()
      .then(
        () => {
          isTroubled = false;
        },
        (error) => {
          const { cause = error } = error as Error;
          if (!isTroubled) log.warn({ reason: reasonOf(cause) }, "the batches of all gateways could not be looked at");
          isTroubled = true;
        },
      )
      .finally(() => {
        if (isClosed) return;
        timer = setTimeout(beatOn, BEAT_MS);
        timer.unref();
      });
  }
  beatOn();

  const expiry = setInterval(() => {
    void rows.removeEnded(now() - Math.ceil(settings().retention / 1000)).catch((error) => {
      log.warn({ reason: reasonOf(error.cause ?? error) }, "batches whose time is over could not be removed");
    });
  }, EXPIRY_INTERVAL_MS);
  expiry.unref();

  async function findAny(id: string): Promise<StoredBatch | undefined> {
    return (await rows.read(id))?.batch;
  }

  async function find(owner: string, id: string): Promise<StoredBatch | undefined> {
    const batch = await findAny(id);
    return batch?.owner === owner ? batch : undefined;
  }

  async function insert(made: StoredBatch): Promise<StoredBatch> {
    const { max_open } = settings();
    const batch = { ...made, createdAtMs: wallTime() };
    let inserted = await rows.insert(batch, max_open);
    if (inserted === "not-ready") {
      await inTime(isReady, READY_MS);
      inserted = await rows.insert(batch, max_open);
    }
    if (inserted === "not-ready") throw batchTrouble(new Error("the batches are being restored"));
    if (!inserted) throw tooManyOpen(max_open);
    runner?.activate({ ...batch }, true);
    return batch;
  }

  return {
    create: (facts) => insert(newBatch(facts, now())),
    async createOf(facts, lines) {
      const id = newId(facts);
      try {
        const format = BATCH_FORMATS[facts.format];
        const given = { format, maxLines: settings().max_lines };
        const { segments, total, model, faults } = await place.keepLines(
          { id, endpoint: facts.endpoint },
          lines,
          given,
        );
        const [fault] = faults;
        if (fault !== undefined) throw new FaultyInput(fault);
        const at = now();
        const batch = newBatch(facts, at);
        return await insert({ ...batch, id, segments, total, model, status: "in_progress", inProgressAt: at });
      } catch (error) {
        await objects.removeAll(dataOf(id)).catch(() => {}); // the next start tries again
        if (error instanceof FaultyInput) throw error;
        throw batchTrouble(error instanceof UnreadableInput ? error.cause : error);
      } finally {
        await rm(join(folder, id), { recursive: true, force: true });
      }
    },
    find,
    list: (owner, query) => rows.list(owner, query),
    listAll: (query) => rows.listAll(query),
    findAny,
    async cancel(owner, id) {
      for (let attempt = 0; attempt < CANCEL_ATTEMPTS; attempt++) {
        const row = await rows.read(id);
        if (row?.batch.owner !== owner) return undefined;
        const { status } = row.batch;
        if (status === "cancelling" || status === "cancelled") return row.batch;
        if (hasEnded(row.batch) || status === "finalizing") throw cannotCancel(row.batch);
        const batch: StoredBatch = { ...row.batch, status: "cancelling", cancellingAt: now() };
        const outcome = await rows.cancel(batch, row.version);
        if (outcome === "too-late") throw cannotCancel(row.batch);
        if (!outcome) continue;
        const run = runner?.activate({ ...batch }, true, true);
        if (run !== undefined) follow(run, { batch, version: "", isClosing: false });
        return batch;
      }
      throw batchTrouble(new Error("other gateways change the batch"));
    },
    async remove(owner, id) {
      const found = await find(owner, id);
      if (found === undefined) return false;
      if (found.outputFileId !== undefined) {
        const resultsOwner = BATCH_FORMATS[found.format].resultsOwner(owner);
        await (await parts.files.inUse())?.delete(resultsOwner, found.outputFileId);
      }
      return await rows.remove(id);
    },
    openCount: () => openCount,
    closing: () => runner?.closing(),
    async close(withinMs) {
      clearInterval(waiting);
      clearInterval(expiry);
      await runner?.stop(withinMs);
      isClosed = true;
      clearTimeout(timer);
      patience.end();
      await beating;
      lock.release();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Those that were created before batches were shared, or while they were not. */
function tellOfLocalBatches({ folder, log }: SharedBatchParts): void {
  const path = join(folder, DATABASE_NAME);
  if (!existsSync(path)) return;
  const local = openBatchRows(path);
  const open = local.openCount();
  local.close();
  const message =
    "batches of this machine wait while batches are shared: they go on without Redis or without the bucket";
  if (open > 0) log.warn({ folder, open }, message);
}
