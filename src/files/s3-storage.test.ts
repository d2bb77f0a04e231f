// Contents in a bucket: a real server, its refusals, and what is left when it goes away.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { INSTALL_TIMEOUT_MS } from "../../scripts/npm-programs.ts";
import { type S3Server, startS3Server } from "../../test/support/s3-server.ts";
import { waitFor } from "../../test/support/wait-for.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { FileStore } from "./file-store.ts";
import { createS3Storage } from "./s3-storage.ts";
import { createFileStore } from "./store.ts";

const root = mkdtempSync(join(tmpdir(), "file-store-s3-"));
const LIMITS = { maxFileBytes: 1_000_000_000, maxTotalBytes: 0 };
const FACTS = { owner: "key:a", filename: "a.bin", mediaType: "text/plain", purpose: "batch" };
let folders = 0;
let server: S3Server;

beforeAll(async () => {
  server = await startS3Server();
}, INSTALL_TIMEOUT_MS);
afterAll(async () => {
  await server.stop();
  rmSync(root, { recursive: true, force: true });
});

function setUp(changes: object = {}, folder = join(root, String(folders++))) {
  const lines: string[] = [];
  const note = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const store = createFileStore({
    folder,
    retentionSeconds: () => undefined,
    wallTime: Date.now,
    log: { info: note, warn: note },
    storage: (catalogue) => createS3Storage({ ...server.settings, ...changes }, catalogue),
  });
  return { folder, store, lines };
}

async function upload(store: FileStore, bytes: Uint8Array) {
  const incoming = store.receive(LIMITS);
  for (let offset = 0; offset < bytes.length; offset += 65_536) {
    await incoming.write(bytes.subarray(offset, offset + 65_536));
  }
  return incoming.finish({ ...FACTS, expiresAfterSeconds: undefined });
}

async function refusal(attempt: Promise<unknown>): Promise<GatewayError> {
  const error = await attempt.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(GatewayError);
  return error as GatewayError;
}

const bodyOf = async (content: Promise<Blob | ReadableStream>) => new Response(await content).bytes();
const spooled = (folder: string) => readdirSync(join(folder, "incoming"));

/** Neither the client nor the log is told a secret, and nothing is listed, spooled or stored. */
function expectNothing({ folder, store, lines }: ReturnType<typeof setUp>, error: GatewayError): void {
  expect([error.status, error.code]).toEqual([503, "storage_unavailable"]);
  expect(error.message + lines.join()).not.toContain("sekret");
  expect(store.list("key:a", { limit: 10, order: "asc" }).files).toEqual([]);
  expect(store.usage()).toEqual({ count: 0, bytes: 0, owners: [] });
  expect(spooled(folder)).toEqual([]);
}

test.each([0, 10, 20_000_000])("%d bytes there and back, whole and in ranges", async (size) => {
  const { store, folder } = setUp();
  const bytes = new Uint8Array(size).map((_, index) => index % 251);
  const file = await upload(store, bytes);
  expect(spooled(folder)).toEqual([]);
  expect(server.objects()).toContain(file.id);
  expect((await bodyOf(store.content(file, 0, size))).length).toBe(size);
  expect(await store.read(file)).toEqual(bytes);
  for (const [start, end] of [
    [0, 2], // s3rver takes "bytes=0-0" for no range
    [3, 7],
    [size - 5, size + 10],
    [size, size],
  ] as const) {
    if (start > size || start < 0) continue;
    expect(await bodyOf(store.content(file, start, end))).toEqual(bytes.subarray(start, end));
  }
  expect(await store.delete("key:b", file.id)).toBe(false);
  expect(await store.delete("key:a", file.id)).toBe(true);
  expect(server.objects()).not.toContain(file.id);
  expect(server.requests.at(-1)).toMatch(/^DELETE \/bucket-1\/files\/[0-9a-f-]{36}\/file-/);
  store.close();
});

test("a wrong secret", async () => {
  const set = setUp({ secret_key: "wrong-sekret" });
  expectNothing(set, await refusal(upload(set.store, new Uint8Array(10))));
  expect(set.lines.join()).toContain("SignatureDoesNotMatch");
  set.store.close();
});

test("a server that is away, and comes back", async () => {
  const away = setUp({ endpoint: "http://127.0.0.1:9" });
  expectNothing(away, await refusal(upload(away.store, new Uint8Array(10))));
  expect(away.lines.join()).toContain("ConnectionRefused");
  away.store.close();

  const { store } = setUp();
  const file = await upload(store, new Uint8Array(10));
  server.faults.answer = () => new Response("", { status: 500 });
  const error = await refusal(store.content(file, 0, 10));
  server.faults.answer = () => undefined;
  expect([error.status, error.code]).toEqual([503, "storage_unavailable"]);
  expect((await bodyOf(store.content(file, 0, 10))).length).toBe(10);
  store.close();
});

test("an upload in parts that fails in the middle leaves nothing", async () => {
  const set = setUp();
  const before = server.objects();
  const isAborted = () => server.requests.some((request) => /^DELETE \S+\?uploadId=/.test(request));
  server.faults.answer = ({ url }) => (/partNumber=2/.test(url) ? new Response("", { status: 500 }) : undefined);
  const error = await refusal(upload(set.store, new Uint8Array(30_000_000)));
  server.faults.answer = () => undefined;
  expectNothing(set, error);
  expect(server.objects()).toEqual(before);
  await waitFor("the parts are given up", isAborted);
  set.store.close();
});

test("what could not be removed goes with the next start", async () => {
  const { store, folder, lines } = setUp();
  const [kept, deleted] = [await upload(store, new Uint8Array(10)), await upload(store, new Uint8Array(10))];
  server.faults.answer = ({ method }) => (method === "DELETE" ? new Response("", { status: 500 }) : undefined);
  expect(await store.delete("key:a", deleted.id)).toBe(true);
  server.faults.answer = () => undefined;
  expect(store.find("key:a", deleted.id)).toBeUndefined();
  expect(lines.join()).toContain("could not be removed");
  expect(server.objects()).toContain(deleted.id);
  await store.recovered;
  store.close();

  const again = setUp({}, folder);
  expect(await again.store.recovered).toEqual({ removedContents: 1, removedRows: 0 });
  expect(server.objects()).not.toContain(deleted.id);
  expect((await bodyOf(again.store.content(kept, 0, 10))).length).toBe(10);
  again.store.close();
});

test("lists that share a bucket leave each other alone", async () => {
  const [one, other] = [setUp(), setUp()];
  const file = await upload(one.store, new Uint8Array(10));
  await other.store.recovered;
  expect(await other.store.delete("key:a", file.id)).toBe(false);
  expect(server.objects()).toContain(file.id);
});
