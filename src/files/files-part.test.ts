// Which store is in use under which configuration.

import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import { documentSchema } from "../config/sections/registry.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { silentLogger } from "../logging/logger.ts";
import type { FileStore } from "./file-store.ts";
import { createFilesPart } from "./files-part.ts";

const root = mkdtempSync(join(tmpdir(), "files-in-use-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let folders = 0;

const versionOf = (files: object) => ({ settings: documentSchema.parse({ files }) }) as ConfigSnapshot;

function setUp(files: object = {}, data = join(root, String(folders++))) {
  const owner = createFilesPart(versionOf(files), {
    dataPath: (path) => join(data, path),
    clock: { wallTime: Date.now },
    log: silentLogger(),
  });
  return { data, owner, folder: join(data, "data/files") };
}

async function upload(store: FileStore) {
  const incoming = store.receive({ maxFileBytes: 100, maxTotalBytes: 0 });
  await incoming.write(new Uint8Array(10));
  const facts = { owner: "key:a", filename: "a", mediaType: "text/plain", purpose: "batch" };
  return incoming.finish({ ...facts, expiresAfterSeconds: undefined });
}

test("opened with its first use, and at a start only where there is one", async () => {
  const first = setUp();
  first.owner.start();
  expect(existsSync(first.folder)).toBe(false);
  const store = await first.owner.inUse();
  expect(existsSync(first.folder)).toBe(true);
  expect(await first.owner.inUse()).toBe(store as FileStore);
  first.owner.stop();
  rmSync(first.folder, { recursive: true });
});

test("kept while limits change, made anew when the place does, and gone while it is off", async () => {
  const { owner } = setUp();
  const store = (await owner.inUse()) as FileStore;
  const file = await upload(store);
  owner.follow(versionOf({ max_file_size: 5, retention: "1h", require_key: true }));
  expect(await owner.inUse()).toBe(store);
  expect((await upload(store)).expiresAt).toBeGreaterThan(file.createdAt);

  const under = store.receive({ maxFileBytes: 100, maxTotalBytes: 0 });
  owner.follow(versionOf({ path: "./data/other" }));
  const other = (await owner.inUse()) as FileStore;
  expect(other).not.toBe(store);
  expect(await other.find("key:a", file.id)).toBeUndefined();
  const facts = { owner: "key:a", filename: "a", mediaType: "text/plain", purpose: "batch" };
  const late = await under.finish({ ...facts, expiresAfterSeconds: undefined });

  owner.follow(versionOf({ enabled: false }));
  expect(owner.inUse()).toBeUndefined();
  owner.follow(versionOf({}));
  const back = (await owner.inUse()) as FileStore;
  expect(await back.find("key:a", file.id)).toEqual(file);
  expect(await back.find("key:a", late.id)).toEqual(late);
  owner.stop();
});

test("a place that cannot be used is told, and used once it can be", async () => {
  const { owner, data, folder } = setUp();
  writeFileSync(data, "a file is no folder");
  const error = await owner.inUse()?.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(GatewayError);
  expect(error).toMatchObject({ status: 503, code: "storage_unavailable" });
  expect((error as GatewayError).message).not.toContain(folder);
  rmSync(data);
  expect((await upload((await owner.inUse()) as FileStore)).bytes).toBe(10);
  owner.stop();
});

test("every bucket has a list of its own, whoever may use it", async () => {
  const s3 = { endpoint: "http://127.0.0.1:9", bucket: "one", access_key: "sekret-access", secret_key: "sekret" };
  const { owner, folder } = setUp({ storage: "s3", s3 });
  const lists = () => readdirSync(folder).filter((name) => name.startsWith("s3-")).length;
  const store = (await owner.inUse()) as FileStore;
  expect(await upload(store).catch((error: GatewayError) => error.code)).toBe("storage_unavailable");
  expect(store.usage().count).toBe(0);
  owner.follow(versionOf({ storage: "s3", s3: { ...s3, secret_key: "other-sekret" } }));
  expect(await owner.inUse()).not.toBe(store);
  expect(lists()).toBe(1);
  owner.follow(versionOf({ storage: "s3", s3: { ...s3, bucket: "two" } }));
  await owner.inUse();
  expect(lists()).toBe(2);
  owner.stop();
});
