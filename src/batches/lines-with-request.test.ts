// Batches whose lines come with the request: nothing stays of one that is refused, and what expires says so.

import { afterEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "../../test/support/wait-for.ts";
import { createFileStore } from "../files/store.ts";
import { type LineAnswer, type NewBatch, NO_SUMS, type StoredBatch } from "./batch-store.ts";
import { openBatches } from "./store.ts";

const DAY_MS = 86_400_000;

const ended: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

function opened(ask: (line: string, signal: AbortSignal) => Promise<LineAnswer>, before?: (folder: string) => void) {
  const root = mkdtempSync(join(tmpdir(), "batches-"));
  const folder = join(root, "batches");
  before?.(folder);
  let nowMs = Date.now();
  const log = { info() {}, warn() {}, error() {} };
  const wallTime = () => nowMs;
  const files = createFileStore({ folder: join(root, "files"), retentionSeconds: () => undefined, wallTime, log });
  const settings = { max_concurrent: 4, max_lines: 10, max_open: 2, retention: 30 * DAY_MS };
  const batches = openBatches({
    ...{ folder, wallTime, log },
    settings: () => settings as never,
    files: { inUse: () => Promise.resolve(files), maxTotalBytes: () => 0 },
    ask: (_batch, line, signal) => ask(line.customId, signal),
    counted() {},
  });
  ended.push(async () => {
    await batches.close(1_000);
    files.close();
    rmSync(root, { recursive: true });
  });
  return {
    ...{ batches, files, folder },
    pass(ms: number) {
      nowMs += ms;
    },
    folders: () => readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory()).length,
  };
}

const FACTS: NewBatch = { owner: "key:a", creator: { kind: "none" }, format: "inline", endpoint: "/v1/messages" };

async function* lines(ids: readonly string[], trouble?: Error): AsyncGenerator<Uint8Array, void> {
  for (const custom_id of ids) {
    yield new TextEncoder().encode(`${JSON.stringify({ custom_id, params: { model: "m" } })}\n`);
  }
  if (trouble !== undefined) throw trouble;
}

const answered = (): LineAnswer => ({
  ...{ status: 200, requestId: "r", body: '{"type":"message"}', isOutage: false },
  ...{ retryAfterMs: undefined, sums: NO_SUMS },
});
const never = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

test("a refused batch leaves nothing", async () => {
  const { batches, folders } = opened(async () => answered());
  await expect(batches.createOf(FACTS, lines(["a", "b", "a"]))).rejects.toThrow("unique");
  await expect(batches.createOf(FACTS, lines(["a", "not allowed"]))).rejects.toThrow("custom_id must be");
  await expect(batches.createOf(FACTS, lines([]))).rejects.toThrow("empty");
  await expect(batches.createOf(FACTS, lines(Array.from({ length: 11 }, (_, index) => `${index}`)))).rejects.toThrow(
    "10",
  );
  await waitFor("all are refused", () => folders() === 0);
  await expect(batches.createOf(FACTS, lines(["a"], new Error("the client left")))).rejects.toMatchObject({
    status: 503,
  });
  expect(folders()).toBe(0);
  expect((await batches.list("key:a", { format: "inline", limit: 10 })).batches).toEqual([]);
});

test("an owner has so many open ones at most", async () => {
  const { batches } = opened((_, signal) => never(signal));
  for (let count = 0; count < 2; count++) await batches.createOf(FACTS, lines(["a"]));
  await expect(batches.createOf(FACTS, lines(["a"]))).rejects.toMatchObject({ status: 429 });
  await batches.createOf({ ...FACTS, owner: "key:b" }, lines(["a"]));
});

test("what has no answer within a day expires, and says so", async () => {
  const { batches, files, folder, pass } = opened((id, signal) =>
    id === "quick" ? Promise.resolve(answered()) : never(signal),
  );
  const { id } = await batches.createOf(FACTS, lines(["quick", "slow-1", "slow-2"]));
  await waitFor("one is done", async () => (await batches.find("key:a", id))?.completed === 1);
  pass(DAY_MS);
  let batch: StoredBatch | undefined;
  await waitFor("the batch has expired", async () => {
    batch = await batches.find("key:a", id);
    return batch?.status === "expired";
  });
  expect(batch).toMatchObject({ total: 3, completed: 1, failed: 2, unanswered: 2 });
  await waitFor("its folder is gone", () => !existsSync(join(folder, id)));
  const owner = "batches of key:a";
  const file = await files.find(owner, batch?.outputFileId ?? "");
  if (file === undefined) throw new Error("there are no results");
  const results = new TextDecoder()
    .decode(await files.read(file))
    .trimEnd()
    .split("\n");
  expect(results.map((line) => JSON.parse(line).result.type)).toEqual(["succeeded", "expired", "expired"]);
  expect(await batches.remove("key:b", id)).toBe(false);
  expect(await batches.remove("key:a", id)).toBe(true);
  expect([await batches.find("key:a", id), await files.find(owner, file.id)]).toEqual([undefined, undefined]);
});

test("lines that a crash has left before their batch was created go at the next start", async () => {
  const { batches, folder } = opened(
    (_, signal) => never(signal),
    (place) => mkdirSync(join(place, "msgbatch_left"), { recursive: true }),
  );
  const { id } = await batches.createOf(FACTS, lines(["a"]));
  await waitFor("the folder is gone", () => !existsSync(join(folder, "msgbatch_left")));
  expect(existsSync(join(folder, id))).toBe(true);
});

test("a line that cannot be asked, because of a bug, is asked again and not lost", async () => {
  let thrown = 0;
  const { batches, pass } = opened((line) => {
    if (line === "b" && thrown++ < 2) return Promise.reject(new Error("a bug"));
    return Promise.resolve(answered());
  });
  const { id } = await batches.createOf(FACTS, lines(["a", "b", "c"]));
  await waitFor("it is over", async () => {
    pass(1_000);
    return (await batches.find("key:a", id))?.status === "completed";
  });
  expect(await batches.find("key:a", id)).toMatchObject({ completed: 3, failed: 0 });
  expect(thrown).toBe(3);
});
