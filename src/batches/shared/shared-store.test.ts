// The store of shared batches while its servers are away: it opens, refuses, closes, and says what waits.

import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "../../../test/support/wait-for.ts";
import { openBatchRows } from "../batch-rows.ts";
import type { NewBatch } from "../batch-store.ts";
import { newBatch } from "../new-batch.ts";
import { DATABASE_NAME } from "../store.ts";
import { openSharedBatches } from "./shared-store.ts";

const FACTS: NewBatch = { owner: "key:a", creator: { kind: "none" }, format: "files", endpoint: "/v1/embeddings" };
const root = mkdtempSync(join(tmpdir(), "shared-batches-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

function opened(folder: string) {
  const told: string[] = [];
  const note = (fields: object, message = "") => void told.push(`${message} ${JSON.stringify(fields)}`);
  const bucket = { endpoint: "http://127.0.0.1:9", bucket: "b", region: "r", access_key: "k", secret_key: "s" };
  const batches = openSharedBatches({
    ...{ folder, wallTime: Date.now, log: { info: note, warn: note, error: note } as never },
    settings: () => ({ max_concurrent: 4, max_lines: 10, max_open: 2, retention: 86_400_000 }) as never,
    files: { inUse: () => undefined, maxTotalBytes: () => 0 },
    ask: () => Promise.reject(new Error("nothing is asked")),
    counted() {},
    redis: () => undefined,
    keyPrefix: () => "",
    bucket: { ...bucket, key_prefix: "" },
  });
  return { batches, told };
}

test("without Redis requests are refused, and the log says once that the batches cannot be looked at", async () => {
  const { batches, told } = opened(join(root, "away"));
  await waitFor("it is told", () => told.length > 0);
  for (const ask of [
    () => batches.find("key:a", "batch_1"),
    () => batches.list("key:a", { format: "files", limit: 10 }),
    () => batches.cancel("key:a", "batch_1"),
    () => batches.create({ ...FACTS, inputFileId: "file-a" }),
  ]) {
    await expect(ask()).rejects.toMatchObject({ status: 503, code: "storage_unavailable" });
  }
  expect(batches.openCount()).toBe(0);
  await batches.close(100);
  expect(told).toEqual(['the batches of all gateways could not be looked at {"reason":"Redis is away"}']);
});

test("batches that this machine had before are told", async () => {
  const folder = join(root, "before");
  mkdirSync(folder);
  const rows = openBatchRows(join(folder, DATABASE_NAME));
  rows.insert(newBatch(FACTS, 1), 10);
  rows.close();
  const { batches, told } = opened(folder);
  await waitFor("it is told", () => told.some((line) => line.includes("batches of this machine wait")));
  expect(told.join()).toContain('"open":1');
  await batches.close(100);
});
