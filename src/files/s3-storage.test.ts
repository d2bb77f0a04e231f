// Contents in a bucket: a real server, its refusals, and what is left when it goes away.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
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

setDefaultTimeout(60_000);
beforeAll(async () => {
  server = await startS3Server();
}, INSTALL_TIMEOUT_MS);
afterAll(async () => {
  await server.stop();
  rmSync(root, { recursive: true, force: true });
});

/** A list for each test. */
const prefixOf = (folder: string) => `files/${basename(folder)}/`;

function setUp(
  changes: object = {},
  folder = join(root, String(folders++)),
  limits?: { questionMs: number; stalledMs: number },
) {
  const lines: string[] = [];
  const note = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const store = createFileStore({
    folder,
    retentionSeconds: () => undefined,
    wallTime: Date.now,
    log: { info: note, warn: note },
    storage: (catalogue) =>
      createS3Storage({ ...server.settings, key_prefix: prefixOf(folder), ...changes }, catalogue, limits),
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

const waitForRemoval = (id: string) => waitFor("the object is gone", () => !server.objects().includes(id));
const bodyOf = async (content: Promise<Blob | ReadableStream>) => new Response(await content).bytes();
const spooled = (folder: string) => readdirSync(join(folder, "incoming"));

/** Neither the client nor the log is told a secret, and nothing is listed, spooled or stored. */
async function expectNothing({ folder, store, lines }: ReturnType<typeof setUp>, error: GatewayError): Promise<void> {
  expect([error.status, error.code]).toEqual([503, "storage_unavailable"]);
  expect(error.message + lines.join()).not.toContain("sekret");
  expect((await store.list("key:a", { limit: 10, order: "asc" })).files).toEqual([]);
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
  await waitForRemoval(file.id);
  expect(server.requests.some((request) => /^DELETE \/bucket-1\/files\/\d+\/contents\/file-/.test(request))).toBe(true);
  store.close();
});

test("a wrong secret", async () => {
  const set = setUp({ secret_key: "wrong-sekret" });
  await expectNothing(set, await refusal(upload(set.store, new Uint8Array(10))));
  expect(set.lines.join()).toContain("SignatureDoesNotMatch");
  set.store.close();
});

test("a server that is away, and comes back", async () => {
  const away = setUp({ endpoint: "http://127.0.0.1:9" });
  await expectNothing(away, await refusal(upload(away.store, new Uint8Array(10))));
  expect(away.lines.join()).toContain("ECONNREFUSED");
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

test("a bucket that is not there", async () => {
  const set = setUp({ bucket: "none" });
  await expectNothing(set, await refusal(upload(set.store, new Uint8Array(10))));
  await expectNothing(set, await refusal(upload(set.store, new Uint8Array(5_000_000))));
  const told = set.lines.filter((line) => line.startsWith("a file could not be stored"));
  expect(told).toEqual(Array(2).fill('a file could not be stored {"reason":"NoSuchBucket"}'));
  set.store.close();
});

test("an upload that the server refuses for a moment is sent again, and is one request without parts", async () => {
  const { store } = setUp();
  let refusals = 2;
  const bytes = new Uint8Array(20_000_000).fill(7);
  server.faults.answer = ({ method }) =>
    method === "PUT" && refusals-- > 0 ? new Response("<Code>SlowDown</Code>", { status: 503 }) : undefined;
  const file = await upload(store, bytes);
  server.faults.answer = () => undefined;
  expect(await store.read(file)).toEqual(bytes);
  // The clean-up of an earlier test may still run.
  const own = server.requests.filter((request) => request.includes(`contents/${file.id}`));
  expect(own.map((request) => request.replace(/ .*/, ""))).toEqual(["PUT", "PUT", "PUT", "HEAD", "GET"]);
  expect(server.requests.join()).not.toMatch(/uploadId|uploads/);
  store.close();
});

test("an upload that fails again and again leaves nothing", async () => {
  const set = setUp();
  const before = server.objects();
  server.faults.answer = ({ method }) => (method === "PUT" ? new Response("", { status: 500 }) : undefined);
  const error = await refusal(upload(set.store, new Uint8Array(30_000_000)));
  server.faults.answer = () => undefined;
  await expectNothing(set, error);
  expect(server.objects()).toEqual(before);
  set.store.close();
});

test("an object of another size, or of which something else is sent, is not given out", async () => {
  const { store } = setUp();
  const file = await upload(store, new Uint8Array(1000));
  for (const answer of [
    () => new Response("another"),
    () => new Response("x".repeat(10), { status: 206, headers: { "Content-Range": "bytes 0-9/11" } }),
    () => new Response("x".repeat(1000), { status: 200 }),
  ]) {
    server.faults.answer = ({ method }) => (method === "GET" ? answer() : undefined);
    const error = await refusal(store.content(file, 0, 10));
    expect(error.message).toContain("is no longer in the storage");
  }
  server.faults.answer = () => undefined;
  store.close();
});

test("a stream that is longer or shorter than its file breaks off", async () => {
  const { store, lines } = setUp();
  const file = await upload(store, new Uint8Array(3_000_000));
  for (const bytes of [2_000_000, 4_000_000]) {
    // Without a length.
    const pieces = async function* () {
      for (let sent = 0; sent < bytes; sent += 1_000_000) yield new Uint8Array(1_000_000);
    };
    server.faults.answer = ({ method }) => (method === "GET" ? new Response(pieces()) : undefined);
    await refusal(store.read(file));
  }
  server.faults.answer = () => undefined;
  expect(lines).toEqual(
    Array(2).fill(`a file could not be read {"id":"${file.id}","reason":"the content has another size"}`),
  );
  store.close();
});

test("no byte for a while ends an upload and a download, wherever they are", async () => {
  const set = setUp();
  const file = await upload(set.store, new Uint8Array(3_000_000));
  // The runtime looks at its limits every few seconds.
  const hurried = setUp({}, set.folder, { questionMs: 100, stalledMs: 1 });
  const part = new Uint8Array(2_000_000);
  const silence = new Promise<never>(() => {});
  const begun = () => {
    const pull = (to: ReadableStreamDefaultController): Promise<never> => {
      to.enqueue(part);
      return silence;
    };
    return new Response(new ReadableStream({ pull }));
  };
  server.faults.answer = ({ method, headers }) => (method === "GET" && !headers.has("range") ? begun() : silence);
  const asked = [
    refusal(upload(hurried.store, new Uint8Array(20_000_000))),
    refusal(hurried.store.content(file, 0, 10)),
    refusal(hurried.store.read(file)),
  ];
  for (const error of await Promise.all(asked)) expect(error.code).toBe("storage_unavailable");
  expect(hurried.lines.join("\n")).toContain("could not be stored");
  expect(hurried.lines.filter((line) => line.startsWith("a file could not be read")).length).toBe(2);
  server.faults.answer = () => undefined;
  for (const { store } of [set, hurried]) store.close();
});

test("whoever deletes a file does not wait for the server", async () => {
  const { store } = setUp();
  const file = await upload(store, new Uint8Array(10));
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  server.faults.answer = () => released.then(() => new Response("", { status: 500 }));
  expect(await store.delete("key:a", file.id)).toBe(true);
  expect(server.objects()).toContain(file.id);
  server.faults.answer = () => undefined;
  release();
  store.close();
});

test("what could not be removed goes with the next start", async () => {
  const { store, folder, lines } = setUp();
  const [kept, deleted] = [await upload(store, new Uint8Array(10)), await upload(store, new Uint8Array(10))];
  server.faults.answer = ({ method }) => (method === "DELETE" ? new Response("", { status: 500 }) : undefined);
  expect(await store.delete("key:a", deleted.id)).toBe(true);
  await waitFor("it is told", () => lines.join().includes("could not be removed"));
  server.faults.answer = () => undefined;
  expect(await store.find("key:a", deleted.id)).toBeUndefined();
  expect(server.objects()).toContain(deleted.id);
  await store.recovered;
  store.close();

  const again = setUp({}, folder);
  expect(await again.store.recovered).toEqual({ removedContents: 1, removedRows: 0 });
  expect(server.objects()).not.toContain(deleted.id);
  expect((await bodyOf(again.store.content(kept, 0, 10))).length).toBe(10);
  again.store.close();
});

test("prefixes of one bucket leave each other alone", async () => {
  const [one, other] = [setUp(), setUp({ key_prefix: "others/" })];
  const file = await upload(one.store, new Uint8Array(10));
  await other.store.recovered;
  expect(await other.store.delete("key:a", file.id)).toBe(false);
  expect(server.objects()).toContain(file.id);
});
