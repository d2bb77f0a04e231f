// The list of files in a bucket: what one gateway stores and deletes, the others see; what an older program has kept stays.

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { INSTALL_TIMEOUT_MS } from "../../scripts/npm-programs.ts";
import { type S3Server, startS3Server } from "../../test/support/s3-server.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import { createBucketList } from "./bucket-list.ts";
import type { FileStore } from "./file-store.ts";
import { createS3Storage } from "./s3-storage.ts";
import { createFileStore } from "./store.ts";

const root = mkdtempSync(join(tmpdir(), "file-list-"));
const PAGE = { limit: 10_000, order: "asc" } as const;
let folders = 0;
let server: S3Server;

setDefaultTimeout(60_000);
beforeAll(async () => {
  server = await startS3Server();
}, INSTALL_TIMEOUT_MS);
afterAll(async () => {
  await server.stop();
  rmSync(root, { recursive: true, force: true });
});

function open(folder = join(root, String(folders++)), wallTime = Date.now, pageKeys?: number) {
  const lines: string[] = [];
  const note = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const store = createFileStore({
    ...{ folder, wallTime },
    retentionSeconds: () => undefined,
    log: { info: note, warn: note },
    storage: (catalogue) => ({
      ...createS3Storage(server.settings, catalogue),
      list: createBucketList(server.settings, 10_000, pageKeys),
    }),
  });
  return { folder, store, lines };
}

async function upload(store: FileStore, owner: string, expiresAfterSeconds?: number) {
  const incoming = store.receive({ maxFileBytes: 1_000, maxTotalBytes: 0 });
  await incoming.write(Buffer.from(`of ${owner}`));
  return incoming.finish({ owner, filename: "a", mediaType: "text/plain", purpose: "batch", expiresAfterSeconds });
}

const idsOf = async (store: FileStore, owner: string) =>
  (await store.list(owner, PAGE)).files.map(({ id }) => id).toSorted();
const isEntryOf = (key: string, id: string) => key.includes("/lists/") && key.endsWith(id);
const isListed = (id: string) => server.keys().some((key) => isEntryOf(key, id));

function bucketClient() {
  const { endpoint, bucket, region, access_key, secret_key } = server.settings;
  const keys = { accessKeyId: access_key, secretAccessKey: secret_key };
  return new Bun.S3Client({ endpoint, bucket, region, ...keys, virtualHostedStyle: false });
}

test("a file of one gateway is found, listed, read and deleted by another", async () => {
  const [one, two] = [open(), open()];
  const file = await upload(one.store, "key:found");
  expect(await two.store.find("key:found", file.id)).toEqual(file);
  expect(await two.store.find("key:other", file.id)).toBeUndefined();
  const more = await upload(one.store, "key:found");
  expect(await idsOf(two.store, "key:found")).toEqual([file.id, more.id].toSorted());
  expect(await idsOf(two.store, "key:other")).toEqual([]);
  expect(new TextDecoder().decode(await two.store.read(more))).toBe("of key:found");
  expect(two.store.usage()).toMatchObject({ count: 2 });

  expect(await two.store.delete("key:found", file.id)).toBe(true);
  expect(await one.store.find("key:found", file.id)).toBeUndefined();
  expect(await one.store.delete("key:found", file.id)).toBe(false);
  expect(await one.store.delete("key:found", more.id)).toBe(true);
  expect(await idsOf(two.store, "key:found")).toEqual([]);
  expect([one.store.usage().count, two.store.usage().count]).toEqual([0, 0]);
  await waitFor("the contents are gone", () => ![file.id, more.id].some((id) => server.objects().includes(id)));
  one.store.close();
  two.store.close();
});

test("a list of more than a page of the bucket", async () => {
  const [one, two] = [open(), open(undefined, Date.now, 3)];
  const files = await Promise.all(Array.from({ length: 10 }, () => upload(one.store, "key:many")));
  const ids = files.map(({ id }) => id).toSorted();
  expect(await idsOf(two.store, "key:many")).toEqual(ids);
  for (const place of [0, 4, 9]) await one.store.delete("key:many", ids[place] as string);
  expect(await idsOf(two.store, "key:many")).toEqual(ids.filter((_, place) => ![0, 4, 9].includes(place)));
  one.store.close();
  two.store.close();
});

test("without the bucket's server the last list is shown, and a later look repairs it", async () => {
  const [one, two] = [open(), open()];
  const file = await upload(one.store, "key:away");
  expect(await idsOf(two.store, "key:away")).toEqual([file.id]);
  await one.store.delete("key:away", file.id);
  server.faults.answer = () => new Response("", { status: 500 });
  expect(await idsOf(two.store, "key:away")).toEqual([file.id]);
  expect((await two.store.find("key:away", file.id))?.id).toBe(file.id);
  await expect(two.store.find("key:away", "file-unknown")).rejects.toMatchObject({ status: 503 });
  server.faults.answer = () => undefined;
  expect(await idsOf(two.store, "key:away")).toEqual([]);
  expect(two.lines.join()).not.toContain("sekret");
  one.store.close();
  two.store.close();
});

test("an entry that could not be removed does not bring a deleted file back, and goes with the next start", async () => {
  const { folder, store, lines } = open();
  const file = await upload(store, "key:left");
  server.faults.answer = ({ method }) => (method === "DELETE" ? new Response("", { status: 500 }) : undefined);
  expect(await store.delete("key:left", file.id)).toBe(true);
  await waitFor("it is told", () => lines.join().includes("could not be removed"));
  expect(await store.find("key:left", file.id)).toBeUndefined();
  expect(await idsOf(store, "key:left")).toEqual([]);
  expect(isListed(file.id)).toBe(true);
  server.faults.answer = () => undefined;
  await store.recovered;
  store.close();
  const again = open(folder);
  await again.store.recovered;
  expect(isListed(file.id)).toBe(false);
  expect(server.objects()).not.toContain(file.id);
  again.store.close();
});

test("an upload that fails leaves no entry", async () => {
  const { store } = open();
  const incoming = store.receive({ maxFileBytes: 1_000, maxTotalBytes: 5 });
  await incoming.write(Buffer.from("1234"));
  const other = store.receive({ maxFileBytes: 1_000, maxTotalBytes: 0 });
  await other.write(Buffer.from("5678"));
  const facts = { owner: "key:full", filename: "a", mediaType: "text/plain", purpose: "batch" };
  await other.finish({ ...facts, expiresAfterSeconds: undefined });
  await expect(incoming.finish({ ...facts, expiresAfterSeconds: undefined })).rejects.toMatchObject({ status: 413 });
  const { store: another } = open();
  await waitFor("one entry is left", async () => (await idsOf(another, "key:full")).length === 1);
  another.close();
  store.close();
});

test("a file whose time is over is gone everywhere", async () => {
  const time = { ms: Date.now() };
  const [one, two] = [open(undefined, () => time.ms), open(undefined, () => time.ms)];
  const file = await upload(one.store, "key:short", 10);
  expect(await idsOf(two.store, "key:short")).toEqual([file.id]);
  time.ms += 11_000;
  expect(await two.store.find("key:short", file.id)).toBeUndefined();
  expect(await one.store.expire()).toBe(1);
  expect(isListed(file.id)).toBe(false);
  expect(await idsOf(two.store, "key:short")).toEqual([]);
  expect(await two.store.expire()).toBe(0);
  one.store.close();
  two.store.close();
});

test("a file whose time is over goes with any gateway of the bucket when its own one is gone", async () => {
  const time = { ms: Date.now() };
  const one = open(undefined, () => time.ms);
  const file = await upload(one.store, "key:orphan", 10);
  one.store.close();
  time.ms += 11_000;
  const two = open(undefined, () => time.ms);
  expect(await idsOf(two.store, "key:orphan")).toEqual([]);
  expect(await two.store.expire()).toBe(1);
  expect(isListed(file.id)).toBe(false);
  expect(server.objects()).not.toContain(file.id);
  two.store.close();
});

test("a damaged entry hides no other file", async () => {
  const [one, two] = [open(), open()];
  const files = [await upload(one.store, "key:damaged"), await upload(one.store, "key:damaged")];
  const [damaged, whole] = files.map(({ id }) => id).toSorted() as [string, string];
  await bucketClient().write(server.keys().find((key) => isEntryOf(key, damaged)) as string, "{}");
  expect(await idsOf(two.store, "key:damaged")).toEqual([whole]);
  expect(two.lines.join()).toContain("is damaged");
  await expect(two.store.find("key:damaged", damaged)).rejects.toMatchObject({ status: 503 });
  expect(await idsOf(one.store, "key:damaged")).toEqual([damaged, whole]);
  one.store.close();
  two.store.close();
});

test("a bucket that is gone takes no file out of the list", async () => {
  const { store } = open();
  const file = await upload(store, "key:bucket");
  const answer = "<Error><Code>NoSuchBucket</Code></Error>";
  server.faults.answer = () => new Response(answer, { status: 404 });
  expect((await store.find("key:bucket", file.id))?.id).toBe(file.id);
  server.faults.answer = () => undefined;
  expect(await idsOf(store, "key:bucket")).toEqual([file.id]);
  expect(store.usage()).toMatchObject({
    owners: expect.arrayContaining([{ owner: "key:bucket", count: 1, bytes: 13 }]),
  });
  store.close();
});

test("files of a program that kept no list in the bucket stay known to their gateway", async () => {
  const { folder, store } = open();
  const file = await upload(store, "key:older");
  store.close();
  // As that program has left it.
  const sqlite = new Database(join(folder, "files.db"));
  const name = "00000000-0000-4000-8000-000000000000";
  sqlite.run("DROP TABLE published");
  sqlite.run("DROP TABLE withdrawn");
  sqlite.run("INSERT OR REPLACE INTO state VALUES ('name', ?)", [name]);
  sqlite.close();
  const client = bucketClient();
  await client.write(`files/${name}/${file.id}`, "of key:older");
  for (const key of server.keys().filter((key) => key.endsWith(file.id) && !key.includes(name)))
    await client.delete(`${key}`);

  const again = open(folder);
  expect(await again.store.find("key:older", file.id)).toEqual(file);
  expect(await idsOf(again.store, "key:older")).toEqual([file.id]);
  expect(new TextDecoder().decode(await again.store.read(file))).toBe("of key:older");
  expect(await again.store.delete("key:older", file.id)).toBe(true);
  await waitFor("its content is gone", () => !server.objects().includes(file.id));
  again.store.close();
});
