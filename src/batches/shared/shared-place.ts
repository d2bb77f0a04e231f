// The place of work that several gateways share: inputs become segments in the bucket, and one gateway at a time takes an input in or
// writes results, under a lease.

import { rm } from "node:fs/promises";
import { join } from "node:path";
import { reasonOf } from "../../files/storage-trouble.ts";
import type { StoredBatch } from "../batch-store.ts";
import type { BatchStep, TakenIn, WorkPlace } from "../batch-work.ts";
import { LOG_NAME } from "../local-work.ts";
import type { Patience } from "../patience.ts";
import { takeIn } from "../take-in.ts";
import { type BatchObjects, dataOf } from "./objects.ts";
import { cutSegments } from "./segments.ts";
import type { BatchServer } from "./server.ts";
import { type BatchCounts, LEASE_MS, LostLease, type SharedRows } from "./shared-rows.ts";
import { SharedWork } from "./shared-work.ts";

/** Before another gateway's lease is looked at again. */
const LOOK_MS = 500;

interface SharedPlaceParts {
  /** Of this process alone. */
  folder: string;
  rows: SharedRows;
  server: BatchServer;
  objects: BatchObjects;
  patience: Patience;
  log: { warn(fields: object, message: string): void };
}

export function createSharedPlace({ folder, rows, server, objects, patience, log }: SharedPlaceParts) {
  const works = new Map<string, SharedWork>();
  /** Tokens of the leases that this gateway has, by the id of their batch. */
  const leases = new Map<string, string>();

  const folderOf = (id: string) => join(folder, id);

  /** Makes it what Redis has. */
  async function refresh(batch: StoredBatch): Promise<void> {
    const row = await patience.until(() => rows.read(batch.id));
    if (row === undefined) return;
    become(batch, row.batch);
    works.get(batch.id)?.take(row.batch);
  }

  /** False where another gateway has gone through the step, or the signal has ended the wait. */
  async function take(batch: StoredBatch, step: BatchStep, token: string, signal?: AbortSignal): Promise<boolean> {
    for (;;) {
      const possession = await patience.until(() => rows.own(batch.id, token, step));
      if (possession === "mine") return true;
      if (possession !== "busy" || signal?.aborted === true) return false;
      await Bun.sleep(LOOK_MS);
    }
  }

  async function alone(batch: StoredBatch, step: BatchStep, task: () => Promise<void>, signal?: AbortSignal) {
    const { id } = batch;
    const token = crypto.randomUUID();
    const work = works.get(id);
    if (step === "finish" && work !== undefined) await patience.until(() => work.release());
    if (!(await take(batch, step, token, signal))) return await refresh(batch);
    leases.set(id, token);
    // A renewal that fails is followed by the next one.
    const renewal = setInterval(() => void rows.own(id, token, step).catch(() => {}), LEASE_MS / 5);
    try {
      await refresh(batch);
      await task();
      return;
    } catch (error) {
      if (!(error instanceof LostLease)) throw error;
    } finally {
      clearInterval(renewal);
      leases.delete(id);
      void rows.letGo(id, token).catch(() => {}); // the lease ends by itself
    }
    await alone(batch, step, task, signal);
  }

  async function upload(from: string, to: string, signal: AbortSignal | undefined): Promise<number> {
    let count = 0;
    for await (const segment of cutSegments(from)) {
      signal?.throwIfAborted();
      await objects.put(`${to}${count}`, segment);
      count++;
    }
    return count;
  }

  async function keepLines(
    { id, endpoint }: Pick<StoredBatch, "id" | "endpoint">,
    ...[input, given]: [AsyncIterable<Uint8Array>, Parameters<WorkPlace["takeIn"]>[2]]
  ): Promise<TakenIn & Pick<StoredBatch, "segments">> {
    const own = join(folderOf(id), crypto.randomUUID());
    try {
      const taken = await takeIn(input, { ...given, endpoint, folder: own });
      if (taken.total === taken.faulty) return taken;
      await objects.putFile(`${dataOf(id)}faulty`, join(own, LOG_NAME));
      // Another gateway that takes the same input in, because this one was too slow, has a folder of its own.
      const to = `${dataOf(id)}lines-${crypto.randomUUID()}/`;
      return { ...taken, segments: { folder: to, count: await upload(own, to, given.signal) } };
    } finally {
      await rm(own, { recursive: true, force: true });
    }
  }

  const place: WorkPlace = {
    async takeIn(batch, input, given) {
      const { segments, ...taken } = await keepLines(batch, input, given);
      batch.segments = segments;
      return taken;
    },
    async open(batch) {
      const { id, segments, completed, failed, sums } = batch;
      if (segments === undefined) throw new Error("the batch has no segments");
      const counts: BatchCounts = { completed, failed, sums: { ...sums } };
      const given = { id, segments, counts, folder: folderOf(id), server, objects, patience };
      const work = new SharedWork({ ...given, closed: () => works.delete(id) });
      works.set(id, work);
      return work;
    },
    async remove({ id }) {
      try {
        await rm(folderOf(id), { recursive: true, force: true });
        await objects.removeAll(dataOf(id));
      } catch (error) {
        // Else it goes with the row.
        log.warn(
          { batch: id, reason: reasonOf((error as Error).cause ?? error) },
          "lines of a batch that has ended are left",
        );
      }
    },
    alone,
  };

  return {
    ...place,
    keepLines,
    /** Undefined while this gateway does not take it in or write its results. */
    leaseOf: (id: string) => leases.get(id),
    /** Counts of a batch as Redis has them. */
    count: (id: string, counts: BatchCounts) => works.get(id)?.take(counts),
    /** Lengthens the claims of all segments. */
    async renew(): Promise<void> {
      for (const work of works.values()) await work.renew();
    },
  };
}

/** Members that it no longer has go. */
export function become(batch: StoredBatch, other: StoredBatch): void {
  for (const name of Object.keys(batch) as (keyof StoredBatch)[]) if (!(name in other)) delete batch[name];
  Object.assign(batch, other);
}
