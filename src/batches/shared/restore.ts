// A Redis server that has lost its data gets the batches back from the bucket. Segments that are done stay done; the lines of the others
// are asked again and say so, because it is not known which of them were asked.

import { hasEnded, NO_SUMS, type StoredBatch } from "../batch-store.ts";
import { type BatchObjects, dataOf, ROWS, resultsName, resultsOf, rowName } from "./objects.ts";
import { RESTORE } from "./scripts.ts";
import type { BatchServer } from "./server.ts";
import type { BatchCounts } from "./shared-rows.ts";
import { countIn } from "./shared-work.ts";

/** Of the gateway that restores; what two gateways restore at once is there once. */
const LEASE_MS = 60_000;

interface RestoreParts {
  server: BatchServer;
  objects: BatchObjects;
  log: { info(fields: object, message: string): void };
}

/** False where another gateway does it. Rejects where Redis or the bucket cannot be used: the next attempt goes on. */
export async function restoreBatches({ server, objects, log }: RestoreParts): Promise<boolean> {
  if (!(await server.take("restoring", "1", LEASE_MS))) return false;
  try {
    let restored = 0;
    for await (const id of objects.names(ROWS)) {
      const batch = (await (await objects.get(rowName(id)))?.json()) as StoredBatch | undefined;
      if (batch?.id === id) restored += await restore(batch, server, objects);
    }
    await server.set("life", "1");
    if (restored > 0) log.info({ batches: restored }, "batches were restored from the bucket: Redis had lost its data");
    return true;
  } finally {
    await server.remove("restoring").catch(() => {}); // the lease ends by itself
  }
}

/** 1 for one that was not there. */
async function restore(batch: StoredBatch, server: BatchServer, objects: BatchObjects): Promise<number> {
  const { id, owner, format, status, segments, createdAt, createdAtMs = createdAt * 1000 } = batch;
  const ended = hasEnded(batch) ? (batch.completedAt ?? batch.failedAt ?? batch.expiredAt ?? batch.cancelledAt) : "";
  const done = ended === "" ? await doneSegments(id, objects) : new Map<string, string>();
  const { completed, failed, sums } = ended === "" ? await countsOf(batch, done, objects) : batch;
  const counts = [completed, failed, sums.input, sums.cachedInput, sums.output, sums.reasoning, sums.cost];
  const facts = [id, owner, format, JSON.stringify(batch), status, segments?.count ?? 0, createdAtMs, ended ?? ""];
  return Number(await server.run(RESTORE, ...facts, ...counts, ...[...done].flat()));
}

/** For each segment one of the objects that have its results. */
async function doneSegments(id: string, objects: BatchObjects): Promise<Map<string, string>> {
  const done = new Map<string, string>();
  for await (const name of objects.names(resultsOf(id))) {
    const [, segment, token] = /^(\d+)-(.+)$/.exec(name) ?? [];
    if (segment !== undefined && token !== undefined) done.set(segment, token);
  }
  return done;
}

async function countsOf(
  { id }: StoredBatch,
  done: ReadonlyMap<string, string>,
  objects: BatchObjects,
): Promise<BatchCounts> {
  const counts: BatchCounts = { completed: 0, failed: 0, sums: { ...NO_SUMS } };
  for (const name of [
    `${dataOf(id)}faulty`,
    ...[...done].map(([segment, token]) => resultsName(id, Number(segment), token)),
  ]) {
    const found = await objects.get(name);
    if (found === undefined) continue;
    const { completed, failed, sums } = await countIn(found);
    counts.completed += completed;
    counts.failed += failed;
    for (const key of Object.keys(sums) as (keyof typeof sums)[]) counts.sums[key] += sums[key];
  }
  return counts;
}
