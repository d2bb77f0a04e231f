// The rows of batches that several gateways run: in Redis, and a copy of each in the bucket, from which a server that has lost its data
// gets them back.

import { BadAnswer } from "../../redis/fault.ts";
import {
  type AnyBatchQuery,
  type BatchPage,
  type BatchQuery,
  hasEnded,
  type LineSums,
  type StoredBatch,
} from "../batch-store.ts";
import type { BatchStep } from "../batch-work.ts";
import { type BatchObjects, dataOf, rowName } from "./objects.ts";
import { BEAT, CANCEL, INSERT, LET, OWN, PAGE, READ, REMOVE, SWEEP, UPDATE } from "./scripts.ts";
import type { BatchServer } from "./server.ts";

/** A gateway that was not heard of for so long is gone: others take over what it had. */
export const LEASE_MS = 5_000;
/** Gateways say four times as often that they are there. */
const SILENCE_MS = 2_000;
const SWEPT_AT_ONCE = 100;

export interface BatchCounts {
  completed: number;
  failed: number;
  sums: LineSums;
}

export interface SharedRow {
  batch: StoredBatch;
  version: string;
  /** No further line is begun. */
  isClosing: boolean;
}

interface OpenBatch {
  id: string;
  version: string;
  isClosing: boolean;
  counts: BatchCounts;
}

type Possession = "mine" | "busy" | "past" | "gone";

/** Another gateway has the lease, or the batch is cancelled. */
export class LostLease extends Error {}

export type SharedRows = ReturnType<typeof createSharedRows>;

export function createSharedRows(server: BatchServer, objects: BatchObjects) {
  const keep = (batch: StoredBatch) => objects.put(rowName(batch.id), Buffer.from(JSON.stringify(batch)));

  async function read(id: string): Promise<SharedRow | undefined> {
    return toRow(await server.run(READ, id));
  }

  async function page(place: string, from: string | undefined, direction: string, limit: number): Promise<BatchPage> {
    const answer = await server.run(PAGE, place, from ?? "", direction, limit + 1);
    const [order, rows] = Array.isArray(answer) ? answer : [];
    if (!Array.isArray(rows)) throw new BadAnswer();
    const batches = rows.slice(0, limit).flatMap((row) => toRow(row)?.batch ?? []);
    return { batches: order === "newer" ? batches.toReversed() : batches, hasMore: rows.length > limit };
  }

  return {
    /** False where the owner has as many open ones as it may; "not-ready" while the server has lost its data. */
    async insert(batch: StoredBatch, maxOpen: number): Promise<boolean | "not-ready"> {
      const { id, owner, format, status } = batch;
      const facts = JSON.stringify(batch);
      // First, because a batch that runs although its client was refused would be paid for.
      await keep(batch);
      const answer = await server.run(INSERT, id, owner, format, facts, status, maxOpen, batch.segments?.count ?? 0);
      if (answer === 1) return true;
      await objects.remove(rowName(id));
      return answer === -1 ? "not-ready" : false;
    },
    read,
    list(owner: string, { format, limit, after, before }: BatchQuery): Promise<BatchPage> {
      const place = `of:${owner}:${format}`;
      return before === undefined ? page(place, after, "older", limit) : page(place, before, "newer", limit);
    },
    listAll: ({ limit, after }: AnyBatchQuery) => page("all", after, "older", limit),
    /** False where another gateway has changed it; "too-late" where it can no longer be cancelled. */
    async cancel(batch: StoredBatch, version: string): Promise<boolean | "too-late"> {
      const answer = await server.run(CANCEL, batch.id, version, JSON.stringify(batch));
      if (answer === 1) await keep(batch);
      return answer === 2 ? "too-late" : answer === 1;
    },
    async own(id: string, token: string, step: BatchStep): Promise<Possession> {
      return (await server.run(OWN, id, token, LEASE_MS, step)) as Possession;
    },
    letGo: (id: string, token: string) => server.run(LET, id, token),
    /** Under the lease of a step. Throws LostLease. */
    async update(batch: StoredBatch, token: string, now: number): Promise<void> {
      const { id, status, segments, failed } = batch;
      const from = status === "in_progress" ? "validating" : "";
      const ended = hasEnded(batch) ? now : "";
      const given = [JSON.stringify(batch), status, from, segments?.count ?? 0, failed, ended];
      if ((await server.run(UPDATE, id, token, ...given)) !== 1) throw new LostLease("another gateway has the batch");
      await keep(batch);
    },
    /** False where there is none that has ended. */
    async remove(id: string): Promise<boolean> {
      if ((await server.run(REMOVE, id)) !== 1) return false;
      await objects.remove(rowName(id));
      return true;
    },
    /** @param before - Unix time in seconds */
    async removeEnded(before: number): Promise<void> {
      const ids = await server.run(SWEEP, before, SWEPT_AT_ONCE);
      if (!Array.isArray(ids)) throw new BadAnswer();
      for (const id of ids as string[]) {
        await objects.remove(rowName(id));
        await objects.removeAll(dataOf(id));
      }
    },
    /** Says that this gateway is there. `isReady`: the server has not lost its data. */
    async beat(limit: number): Promise<{ isReady: boolean; count: number; open: OpenBatch[] }> {
      const answer = await server.run(BEAT, SILENCE_MS, limit);
      if (!Array.isArray(answer) || !Array.isArray(answer[2])) throw new BadAnswer();
      const open = (answer[2] as unknown[][]).map(([id, version, closing, counts]) => ({
        ...{ id: String(id), version: String(version), isClosing: closing !== null },
        counts: toCounts(counts),
      }));
      return { isReady: answer[0] === 1, count: Number(answer[1]), open };
    },
  };
}

function toRow(answer: unknown): SharedRow | undefined {
  if (!Array.isArray(answer)) return undefined;
  const [, facts, version, closing, counts] = answer as unknown[];
  if (typeof facts !== "string" || typeof version !== "string") throw new BadAnswer();
  const batch = JSON.parse(facts) as StoredBatch;
  // One that has ended has its last counts itself: lines without an answer are among them.
  return { batch: hasEnded(batch) ? batch : { ...batch, ...toCounts(counts) }, version, isClosing: closing !== null };
}

/** In the order of the scripts. */
export function toCounts(answer: unknown): BatchCounts {
  if (!Array.isArray(answer)) throw new BadAnswer();
  const [completed = 0, failed = 0, input = 0, cachedInput = 0, output = 0, reasoning = 0, cost = 0] =
    answer.map(Number);
  return { completed, failed, sums: { input, cachedInput, output, reasoning, cost } };
}
