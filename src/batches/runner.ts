// Runs the batches that are not finished: takes their input in, asks their lines in turn, and writes their results.

import type { Settings } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { FileStore, FilesInUse } from "../files/file-store.ts";
import { reasonOf } from "../files/storage-trouble.ts";
import { inTime } from "../lib/abortable-delay.ts";
import { ByteAllowance } from "../lib/byte-allowance.ts";
import { BatchRun } from "./batch-run.ts";
import {
  type BatchFault,
  type BatchLine,
  hasEnded,
  type LineAnswer,
  NO_SUMS,
  type StoredBatch,
} from "./batch-store.ts";
import type { BatchWork, WorkPlace } from "./batch-work.ts";
import { BATCH_FORMATS } from "./formats.ts";
import type { Patience } from "./patience.ts";
import { UnreadableInput } from "./take-in.ts";
import { hasGroups } from "./vendor/group-files.ts";
import type { VendorBatchApi } from "./vendor/vendor-api.ts";
import { KEPT_BYTES, VendorDesk } from "./vendor/vendor-desk.ts";
import type { VendorTurn } from "./vendor/vendor-turn.ts";
import { writeResults } from "./write-results.ts";

/** Batches under way at the same time, each with some memory; further ones wait in the list. */
const MAX_RUNS = 256;
const TICK_MS = 250;
/** Lines of all batches whose budgets are kept while vendors have them; further ones are asked one by one. */
const MAX_KEPT_BUDGETS = 200_000;

/** A bug is no reason to lose a line: it is asked again, and in the end this is its result. */
const NO_ANSWER: LineAnswer = {
  ...{ status: 500, requestId: "", isOutage: true, retryAfterMs: undefined, sums: NO_SUMS },
  body: JSON.stringify({
    error: { message: "The gateway could not ask this line.", type: ERRORS.internal.type, code: ERRORS.internal.code },
  }),
};

/** Asks the gateway one line, as the caller who created the batch. Where it was handed over, the turn says so. */
export type AskLine = (
  batch: StoredBatch,
  line: BatchLine,
  signal: AbortSignal,
  turn: VendorTurn | undefined,
) => Promise<LineAnswer>;

export interface RunnerParts {
  place: WorkPlace;
  settings(): Settings["batches"];
  /** Milliseconds since the Unix epoch. */
  wallTime(): number;
  files: { inUse: FilesInUse; maxTotalBytes(): number };
  ask: AskLine;
  /** Undefined: none is asked for batches. */
  vendors?: VendorBatchApi | undefined;
  /** A line has its result. */
  counted(endpoint: string, isError: boolean): void;
  rows: {
    /** The oldest that are not finished. */
    open(limit: number): StoredBatch[];
    update(batch: StoredBatch): void | Promise<void>;
  };
  patience: Patience;
  log: Record<"info" | "warn" | "error", (fields: object, message: string) => void>;
}

export type Runner = ReturnType<typeof createRunner>;

export function createRunner(parts: RunnerParts) {
  const { place, settings, wallTime, patience, rows, log } = parts;
  const runs = new Map<string, BatchRun>();
  const keptBudgets = new ByteAllowance(MAX_KEPT_BUDGETS * KEPT_BYTES);
  let turn = 0;
  let asking = 0;
  let isStopping = false;
  /** There may be batches in the list that are not under way. */
  let someWait = true;
  /** Inputs are taken in one after the other. */
  let lastIntake: Promise<unknown> = Promise.resolve();
  const timer = setInterval(tick, TICK_MS);
  timer.unref();

  function tick(): void {
    if (isStopping) return;
    for (const run of runs.values()) if (run.batch.expiresAt * 1000 <= wallTime()) run.end("expired");
    if (someWait && runs.size < MAX_RUNS) {
      someWait = false;
      void patience.until(() => rows.open(MAX_RUNS)).then(resume, () => {}); // at the end of everything
    }
    pump();
  }

  function resume(batches: readonly StoredBatch[]): void {
    for (const batch of batches) activate(batch, true);
    someWait ||= batches.length === MAX_RUNS;
  }

  /** `isUrgent`: begins it also where others wait. */
  function activate(batch: StoredBatch, isRecovered: boolean, isUrgent = false): BatchRun | undefined {
    const known = runs.get(batch.id);
    if (known !== undefined || isStopping) return known;
    if (runs.size >= MAX_RUNS && !isUrgent) {
      someWait = true;
      return undefined;
    }
    const run = new BatchRun(batch, isRecovered);
    runs.set(batch.id, run);
    run.over = live(run).finally(() => runs.delete(batch.id));
    return run;
  }

  /** Asks as many lines as there may be, of each batch in turn. */
  function pump(): void {
    while (asking < settings().max_concurrent && !isStopping) {
      const ready = [...runs.values()].filter((run) => run.mayAsk(wallTime()));
      const run = ready[turn++ % ready.length];
      if (run === undefined) return;
      asking++;
      run.asking++;
      void askNext(run)
        .catch((error) => {
          if (!isStopping)
            log.error({ batch: run.batch.id, reason: reasonOf(error) }, "a line of a batch was given up");
        })
        .finally(() => {
          asking--;
          run.asking--;
          run.look();
          pump();
        });
    }
  }

  async function askNext(run: BatchRun): Promise<void> {
    const { work } = run;
    const line = run.takeReturned(wallTime()) ?? (await run.takeNew(wallTime()));
    if (line === undefined || work === undefined || work.holds?.(line) === false) return;
    const vendorTurn = run.desk?.turnOf(line);
    const answer = await askOnce(run, line, vendorTurn);
    // Nothing is known of a line that was broken off.
    if (answer === undefined || vendorTurn?.isHandedOver === true) return;
    if (run.mustWait(line, answer, wallTime())) return;
    await settle(run, work, line, answer);
  }

  /** Undefined where it was broken off. */
  async function askOnce(run: BatchRun, line: BatchLine, vendorTurn?: VendorTurn): Promise<LineAnswer | undefined> {
    const { batch } = run;
    try {
      return await run.during((signal) => parts.ask(batch, line, signal, vendorTurn));
    } catch (error) {
      const facts = { batch: batch.id, reason: reasonOf(error) };
      log.error(facts, "a line of a batch could not be asked; it is asked again");
      return NO_ANSWER;
    }
  }

  async function settle(run: BatchRun, work: BatchWork, line: BatchLine, answer: LineAnswer): Promise<void> {
    const { batch } = run;
    const result = BATCH_FORMATS[batch.format].answered(line.customId, answer, line.isAskedAgain);
    await work.settle(line, result, answer.sums);
    run.settled();
    parts.counted(batch.endpoint, result.isError);
  }

  /** What a vendor has answered to a line. False: it could not be read now. */
  async function takeVendorAnswer(run: BatchRun, line: BatchLine, vendorTurn: VendorTurn): Promise<boolean> {
    const { work, desk } = run;
    run.asking++;
    try {
      const answer = await askOnce(run, line, vendorTurn);
      if (answer === undefined || work === undefined) return true;
      const isRefusedForNow = answer.status === 429 || answer.status === 503;
      if (isRefusedForNow && !vendorTurn.isUsed) return false;
      desk?.askDirectly(line);
      if (!run.mustWait(line, answer, wallTime())) await settle(run, work, line, answer);
      return true;
    } finally {
      run.asking--;
      run.look();
      pump();
    }
  }

  async function openDesk(run: BatchRun, { held }: BatchWork): Promise<VendorDesk | undefined> {
    // One that began without them goes on without them.
    const { vendors: api } = parts;
    if (api === undefined || held === undefined) return undefined;
    if (settings().vendor === false && !hasGroups(held.folder)) return undefined;
    return await VendorDesk.open({
      ...{ batch: run.batch, held, api, memory: keptBudgets, wallTime, patience, log },
      mayUse(backend) {
        const { vendor } = settings();
        return typeof vendor === "boolean" ? vendor : vendor.includes(backend);
      },
      answered: (line, vendorTurn) => takeVendorAnswer(run, line, vendorTurn),
      changed() {
        run.look();
        pump();
      },
    });
  }

  const save = (batch: StoredBatch) => patience.until(() => rows.update(batch));
  const now = () => Math.floor(wallTime() / 1000);

  /** The whole life of a batch in this process. Rejects never. */
  async function live(run: BatchRun): Promise<void> {
    const { batch } = run;
    try {
      if (batch.status === "validating") await place.alone(batch, "intake", () => validate(run), run.ended);
      if (hasEnded(batch)) return;
      if (batch.inProgressAt !== undefined) {
        const work = await place.open(batch);
        run.desk = await openDesk(run, work);
        run.use(work);
      }
      if (batch.status === "in_progress") {
        run.desk?.start();
        pump();
        await run.asked;
      }
      if (isStopping) return;
      await place.alone(batch, "finish", () => finish(run));
    } catch (error) {
      if (isStopping) return;
      log.error({ batch: batch.id, reason: reasonOf(error) }, "a batch has failed");
      run.end("stopped");
      await run.idle();
      const faults = [{ code: "internal_error", message: "The gateway could not run this batch." }];
      await place.alone(batch, "finish", () => fail(batch, faults)).catch(() => {});
    } finally {
      await run.work?.close().catch(() => {}); // what it has not written is asked again
      if (!isStopping) run.desk?.end("cancelled");
      await run.desk?.close();
    }
  }

  async function validate(run: BatchRun): Promise<void> {
    const { batch, ended } = run;
    const turnToTakeIn = lastIntake.then(() => (ended.aborted ? undefined : patience.until(() => intake(run))));
    lastIntake = turnToTakeIn.catch(() => {});
    const taken = await turnToTakeIn;
    if (taken === undefined || ended.aborted) return;
    if (taken.total === taken.faulty) return await fail(batch, taken.faults);
    const { total, faults, model, faulty: failed } = taken;
    Object.assign(batch, { total, failed, faults, model, status: "in_progress", inProgressAt: now() });
    await save(batch);
  }

  async function intake({ batch, ended }: BatchRun) {
    const { max_bytes, max_lines } = settings();
    const refused = (code: string, message: string) => ({
      total: 0,
      faulty: 0,
      model: undefined,
      faults: [{ code, message }],
    });
    const unreadable = refused("invalid_input_file", "The input file was deleted, or cannot be read.");
    try {
      const store = await requireFiles();
      const file = await store.find(batch.owner, batch.inputFileId ?? "");
      if (file === undefined) return unreadable;
      if (file.bytes > max_bytes) {
        return refused("file_too_large", `The input file has more than ${max_bytes} bytes (batches.max_bytes).`);
      }
      const content = await store.content(file, 0, file.bytes);
      const input = content instanceof Blob ? content.stream() : content;
      const given = { format: BATCH_FORMATS[batch.format], maxLines: max_lines, signal: ended };
      return await place.takeIn(batch, input, given);
    } catch (error) {
      if (ended.aborted) return undefined;
      // A storage in trouble names its cause; a file that is gone has none.
      const isGone = error instanceof GatewayError && error.cause === undefined && parts.files.inUse() !== undefined;
      if (error instanceof UnreadableInput || isGone) return unreadable;
      throw error;
    }
  }

  async function fail(batch: StoredBatch, faults: readonly BatchFault[]): Promise<void> {
    const facts = { status: "failed", failedAt: now(), faults } as const;
    await save({ ...batch, ...facts });
    Object.assign(batch, facts);
    await place.remove(batch);
  }

  async function requireFiles(): Promise<FileStore> {
    const opening = parts.files.inUse();
    if (opening === undefined) throw new GatewayError(ERRORS.storageUnavailable, "files are off (files.enabled)");
    return await opening;
  }

  async function finish(run: BatchRun): Promise<void> {
    const { batch, work } = run;
    run.desk?.end(batch.status === "cancelling" ? "cancelled" : "expired");
    if (batch.status !== "cancelling" && batch.status !== "finalizing") {
      Object.assign(batch, { status: "finalizing", finalizingAt: now() });
      await save(batch);
    }
    const isCancelled = batch.status === "cancelling";
    let isRepeated = run.isRecovered;
    const written =
      work &&
      (await patience.until(async () => {
        const isAgain = isRepeated;
        isRepeated = true;
        const store = await requireFiles();
        const maxTotalBytes = parts.files.maxTotalBytes();
        const [format, why] = [
          BATCH_FORMATS[batch.format],
          isCancelled ? ("cancelled" as const) : ("expired" as const),
        ];
        return await writeResults({ store, maxTotalBytes, format, batch, work, why, isRepeated: isAgain });
      }));
    const { outputFileId, errorFileId, unanswered = 0 } = written ?? {};
    const isExpired = unanswered > 0 || batch.total === 0;
    const end = isCancelled ? "cancelled" : isExpired ? "expired" : "completed";
    run.count();
    const failed = batch.failed + unanswered;
    const facts = { outputFileId, errorFileId, failed, unanswered, atVendors: 0, status: end, [`${end}At`]: now() };
    // Clients must not see an end that a crash or a full disk takes back.
    await save({ ...batch, ...facts } as StoredBatch);
    Object.assign(batch, facts);
    await place.remove(batch);
    log.info({ batch: batch.id, status: end, completed: batch.completed, failed }, `batch ${batch.id} is ${end}`);
  }

  return {
    activate,
    /** One under way, with its counts of now. */
    find: (id: string) => runs.get(id)?.batch,
    /** Ids of those under way. */
    ids: () => [...runs.keys()],
    get running() {
      return runs.size;
    },
    /** Begins no further line. */
    closing(): void {
      isStopping = true;
      clearInterval(timer);
    },
    /** Lines under way have this time; those that are broken off are asked again after the next start. */
    async stop(withinMs: number): Promise<void> {
      isStopping = true;
      clearInterval(timer);
      const idle = Promise.all([...runs.values()].map((run) => run.idle()));
      await inTime(idle, withinMs);
      patience.end();
      for (const run of runs.values()) {
        run.end("stopped");
        run.desk?.stop();
      }
      await Promise.all([...runs.values()].map((run) => run.over));
    },
  };
}
