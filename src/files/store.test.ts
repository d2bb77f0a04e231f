// The store on the local disk: what arrives, what is listed, and what is left of it.

import { afterAll, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GatewayError } from "../errors/gateway-error.ts";
import type { FileFacts, FileQuery, FileStore } from "./file-store.ts";
import { createFileStore, type FileStoreParts } from "./store.ts";

const root = mkdtempSync(join(tmpdir(), "file-store-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const LIMITS = { maxFileBytes: 1_000_000, maxTotalBytes: 0 };
const START = 1_800_000_000;
let folders = 0;

function setUp(changes: Partial<FileStoreParts> = {}) {
  const folder = changes.folder ?? join(root, String(folders++));
  const time = { seconds: START };
  const lines: string[] = [];
  const note = (_fields: object, message: string) => void lines.push(message);
  const store = createFileStore({
    folder,
    retentionSeconds: () => undefined,
    wallTime: () => time.seconds * 1000,
    log: { info: note, warn: note },
    ...changes,
  });
  return { folder, store, time, lines };
}

function factsOf(changes: Partial<FileFacts> = {}): FileFacts {
  const mediaType = "text/plain";
  const facts = { owner: "key:a", filename: "a.txt", mediaType, purpose: "user_data" };
  return { ...facts, expiresAfterSeconds: undefined, ...changes };
}

async function upload(store: FileStore, content: string | Uint8Array, changes: Partial<FileFacts> = {}) {
  const incoming = store.receive(LIMITS);
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  for (let offset = 0; offset < bytes.length; offset += 1000) {
    await incoming.write(bytes.subarray(offset, offset + 1000));
  }
  return incoming.finish(factsOf(changes));
}

async function refusal(attempt: Promise<unknown> | undefined): Promise<GatewayError> {
  const error = await attempt?.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(GatewayError);
  return error as GatewayError;
}

/** Contents and uploads under way, wherever they lie. */
function onDisk(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true });
  return names.filter((entry) => entry.isFile() && /^file-/.test(entry.name)).map(({ name }) => name);
}

test("a file is whole, private, and known to its owner alone", async () => {
  const { store, folder } = setUp();
  const bytes = crypto.getRandomValues(new Uint8Array(60_000));
  const file = await upload(store, bytes, { filename: "ä.bin", mediaType: "application/pdf" });
  expect(file).toEqual({
    id: expect.stringMatching(/^file-[a-z0-9]{24}$/),
    owner: "key:a",
    filename: "ä.bin",
    mediaType: "application/pdf",
    purpose: "user_data",
    bytes: 60_000,
    sha256: new Bun.CryptoHasher("sha256").update(bytes).digest("hex"),
    createdAt: START,
    expiresAt: undefined,
  });
  expect(await store.find("key:a", file.id)).toEqual(file);
  expect(await store.read(file)).toEqual(bytes);
  expect(await new Response(await store.content(file, 10, 20)).bytes()).toEqual(bytes.subarray(10, 20));

  expect(await store.find("key:b", file.id)).toBeUndefined();
  expect(await store.list("key:b", { limit: 10, order: "asc" })).toEqual({ files: [], hasMore: false });
  expect(await store.delete("key:b", file.id)).toBe(false);
  expect(await store.find("key:a", file.id)).toEqual(file);

  for (const name of readdirSync(folder, { recursive: true }) as string[]) {
    const { mode } = statSync(join(folder, name));
    expect([name, (mode & 0o777).toString(8)]).toEqual([name, statSync(join(folder, name)).isFile() ? "600" : "700"]);
  }
  expect(await store.delete("key:a", file.id)).toBe(true);
  expect(await store.delete("key:a", file.id)).toBe(false);
  expect(onDisk(folder)).toEqual([]);
  store.close();
});

test("an empty file is a file", async () => {
  const { store } = setUp();
  const file = await upload(store, "");
  expect(file.bytes).toBe(0);
  expect((await store.read(file)).byteLength).toBe(0);
});

test("what is not finished is listed nowhere and leaves nothing", async () => {
  const { store, folder } = setUp();
  const incoming = store.receive(LIMITS);
  await incoming.write(new Uint8Array(5000));
  expect(onDisk(folder)).toHaveLength(1);
  expect(store.usage()).toEqual({ count: 0, bytes: 0, owners: [] });
  incoming.discard();
  incoming.discard();
  expect((await refusal(incoming.finish(factsOf()))).status).toBe(503);
  expect(onDisk(folder)).toEqual([]);

  const finished = store.receive(LIMITS);
  const file = await finished.finish(factsOf());
  finished.discard();
  expect(await store.find("key:a", file.id)).toEqual(file);
});

test("limits: of one file, and of all that are stored and that arrive", async () => {
  const { store, folder } = setUp();
  const large = store.receive({ maxFileBytes: 100, maxTotalBytes: 0 });
  await large.write(new Uint8Array(100));
  const tooLarge = await refusal(large.write(new Uint8Array(1)) as Promise<void>);
  expect([tooLarge.status, tooLarge.message.includes("files.max_file_size")]).toEqual([413, true]);
  expect(await refusal(large.finish(factsOf()))).toBe(tooLarge);

  await upload(store, new Uint8Array(500));
  const limits = { maxFileBytes: 1000, maxTotalBytes: 1000 };
  const first = store.receive(limits);
  await first.write(new Uint8Array(400));
  const second = store.receive(limits);
  await second.write(new Uint8Array(100));
  const full = await refusal(second.write(new Uint8Array(1)) as Promise<void>);
  expect([full.status, full.message.includes("files.max_total_size")]).toEqual([413, true]);
  await first.write(new Uint8Array(100));
  await first.finish(factsOf());
  expect(store.usage()).toMatchObject({ count: 2, bytes: 1000 });
  expect((await refusal(store.receive(limits).write(new Uint8Array(1)) as Promise<void>)).status).toBe(413);
  expect(onDisk(folder)).toHaveLength(2);
});

test("pages go both ways, by order and purpose", async () => {
  const { store, time } = setUp();
  const ids: string[] = [];
  for (let index = 0; index < 7; index++) {
    const purpose = index % 3 === 0 ? "batch" : "user_data";
    ids.push((await upload(store, `${index}`, { purpose })).id);
    if (index % 2 === 0) time.seconds++;
  }
  await upload(store, "other", { owner: "key:b" });
  const page = async (query: Partial<FileQuery>) => {
    const { files, hasMore } = await store.list("key:a", { limit: 3, order: "asc", ...query });
    return [files.map(({ id }) => ids.indexOf(id)).join(""), hasMore];
  };
  expect(await page({})).toEqual(["012", true]);
  expect(await page({ after: ids[2] })).toEqual(["345", true]);
  expect(await page({ after: ids[3] })).toEqual(["456", false]);
  expect(await page({ order: "desc" })).toEqual(["654", true]);
  expect(await page({ order: "desc", after: ids[2] })).toEqual(["10", false]);
  expect(await page({ before: ids[5] })).toEqual(["234", true]);
  expect(await page({ before: ids[3] })).toEqual(["012", false]);
  expect(await page({ order: "desc", before: ids[2] })).toEqual(["543", true]);
  expect(await page({ after: ids[1], before: ids[4] })).toEqual(["23", false]);
  expect(await page({ purpose: "batch" })).toEqual(["036", false]);
  expect(await page({ purpose: "batch", limit: 2, after: ids[1] })).toEqual(["36", false]);
  expect(await page({ purpose: "vision" })).toEqual(["", false]);
  expect(await page({ after: "file-unknown", limit: 1 })).toEqual(["0", true]);
  await store.delete("key:a", ids[1] as string);
  expect(await page({})).toEqual(["023", true]);
  expect(store.usage().owners).toEqual([
    { owner: "key:a", count: 6, bytes: 6 },
    { owner: "key:b", count: 1, bytes: 5 },
  ]);
});

test("a file whose time is over is unknown at once, and goes", async () => {
  let retention: number | undefined;
  const { store, time, folder } = setUp({ retentionSeconds: () => retention });
  const kept = await upload(store, "kept");
  const own = await upload(store, "own", { expiresAfterSeconds: 3600 });
  retention = 60;
  const short = await upload(store, "short");
  expect([own.expiresAt, short.expiresAt]).toEqual([START + 3600, START + 60]);
  time.seconds += 59;
  expect(await store.find("key:a", short.id)).toEqual(short);
  time.seconds += 1;
  expect(await store.find("key:a", short.id)).toBeUndefined();
  expect((await store.list("key:a", { limit: 10, order: "asc" })).files).toEqual([kept, own]);
  expect(await store.delete("key:a", short.id)).toBe(false);
  expect(await store.expire()).toBe(1);
  expect(onDisk(folder).sort()).toEqual([kept.id, own.id].sort());
  expect(store.usage()).toMatchObject({ count: 2, bytes: 7 });
});

test("a start cleans up behind a crash, and only behind it", async () => {
  const { store, folder, lines } = setUp();
  await store.recovered;
  const [whole, gone, cut] = [
    await upload(store, "whole"),
    await upload(store, "gone"),
    await upload(store, "cut off"),
  ];
  const pathOf = (id: string) => join(folder, "contents", id.slice(5, 7), id);
  expect(lines).toEqual([]);
  const under = store.receive(LIMITS);
  await under.write(new Uint8Array(10));
  store.close();

  // Somebody who is there keeps everybody else from cleaning up.
  const beside = setUp({ folder });
  expect(await beside.store.recovered).toBeUndefined();
  await under.finish(factsOf());
  beside.store.close();
  rmSync(pathOf(gone.id));
  mkdirSync(join(folder, "contents", "zz"), { recursive: true });
  const before = Date.now() / 1000 - 5;
  truncateSync(pathOf(cut.id), 3);
  utimesSync(pathOf(cut.id), before, before);
  for (const name of [join("contents", "zz", "file-zznobody"), join("incoming", "file-half")]) {
    writeFileSync(join(folder, name), "left");
    utimesSync(join(folder, name), before, before);
  }

  const again = setUp({ folder });
  expect(await again.store.recovered).toEqual({ removedRows: 2, removedContents: 2 });
  expect(again.lines).toHaveLength(1);
  const listed = (await again.store.list("key:a", { limit: 10, order: "asc" })).files.map(({ id }) => id);
  expect(listed).toContain(whole.id);
  expect(listed).toHaveLength(2);
  expect(onDisk(folder).sort()).toEqual(listed.toSorted());
  expect(again.store.usage()).toMatchObject({ count: 2, bytes: 15 });
  again.store.close();
});

test("an upload during the clean-up is left alone", async () => {
  const { folder, store } = setUp();
  await store.recovered;
  for (let index = 0; index < 100; index++) await upload(store, "content");
  store.close();
  const again = setUp({ folder });
  const uploads = Array.from({ length: 20 }, () => upload(again.store, "meanwhile"));
  const files = await Promise.all(uploads);
  expect(await again.store.recovered).toEqual({ removedRows: 0, removedContents: 0 });
  for (const file of files) expect(existsSync(join(folder, "contents", file.id.slice(5, 7), file.id))).toBe(true);
  again.store.close();
});

test("content that somebody has taken away is told clearly", async () => {
  const { store, folder } = setUp();
  const file = await upload(store, "content");
  rmSync(join(folder, "contents"), { recursive: true });
  for (const error of [await refusal(store.content(file, 0, 5)), await refusal(store.read(file))]) {
    expect([error.status, error.code, error.message.includes(file.id)]).toEqual([503, "storage_unavailable", true]);
    expect(error.message).not.toContain(folder);
  }
  expect(await store.delete("key:a", file.id)).toBe(true);
});

test("a storage that takes nothing says so without its place", async () => {
  const { store, folder } = setUp();
  rmSync(join(folder, "incoming"), { recursive: true });
  const error = await refusal(store.receive(LIMITS).write(new Uint8Array(3)) as Promise<void>);
  expect([error.status, error.code]).toEqual([503, "storage_unavailable"]);
  expect(error.message).not.toContain(folder);
  mkdirSync(join(folder, "incoming"));
  expect((await upload(store, "again")).bytes).toBe(5);
});

test("of a file that was deleted since it was found there is no content", async () => {
  const { store } = setUp();
  const file = await upload(store, "hello");
  expect(await store.delete("key:a", file.id)).toBe(true);
  for (const error of [await refusal(store.content(file, 0, 5)), await refusal(store.read(file))]) {
    expect([error.status, error.code, error.param]).toEqual([404, "file_resolution_failed", "file_id"]);
  }
  store.close();
});
