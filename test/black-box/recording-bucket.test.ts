// A bucket of recordings that is away or wrong: clients notice nothing, and nothing is lost without a word.

import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat } from "../support/openai-answers.ts";
import { ask, ownIdOf, recordingConfig } from "../support/recordings.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend({ answer: chat("hello") });

/** What the server of the bucket does; undefined: as it should. */
type Fault = (method: string, object: string) => Response | undefined;

const stored = new Map<string, Uint8Array>();
let fault: Fault = () => undefined;
const bucket = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const { method } = request;
    const object = new URL(request.url).pathname;
    const wrong = fault(method, object);
    if (wrong !== undefined) return wrong;
    if (method === "PUT") stored.set(object, await request.bytes());
    if (method === "DELETE") return new Response(null, { status: stored.delete(object) ? 204 : 404 });
    const content = stored.get(object);
    return content === undefined ? new Response("<Code>NoSuchKey</Code>", { status: 404 }) : new Response(content);
  },
});

let gateway: Gateway;
let admin: AdminClient;

beforeAll(async () => {
  const s3 = { endpoint: bucket.url.origin, bucket: "b", access_key: "key", secret_key: "sekret-s3" };
  gateway = await bed.gateway({ config: recordingConfig(backend, { storage: "s3", s3 }) });
  admin = new AdminClient(gateway);
});

beforeEach(() => {
  fault = () => undefined;
});

afterAll(() => bucket.stop(true));

async function asked(): Promise<string> {
  const response = await ask(gateway, "Where is the kiwi?");
  expect(response.status).toBe(200);
  await response.text();
  return ownIdOf(response);
}

async function countOf(result: string): Promise<number> {
  const metrics = await (await gateway.fetch("/metrics")).text();
  const line = metrics.split("\n").find((each) => each.startsWith(`signalbox_recordings_total{result="${result}"}`));
  return Number(line?.split(" ").at(-1) ?? 0);
}

async function kept(): Promise<string> {
  const before = await countOf("kept");
  const id = await asked();
  await waitFor("it is kept", async () => (await countOf("kept")) > before);
  return id;
}

test.each<[string, Fault]>([
  ["refuses", () => new Response("<Code>SlowDown</Code>", { status: 503 })],
  ["forbids", () => new Response("<Code>AccessDenied</Code>", { status: 403 })],
  ["redirects", () => new Response(null, { status: 307, headers: { Location: "http://127.0.0.1:1/" } })],
])(
  "a bucket that %s everything costs no answer; what is not kept is counted, logged once, and not found",
  async (_, wrong) => {
    const before = await countOf("failed");
    const warned = () =>
      gateway.printed.logEntries.filter(({ msg }) => String(msg).includes("could not be kept")).length;
    const warnings = warned();
    fault = wrong;
    const ids = [await asked(), await asked()];
    await waitFor("both are counted", async () => (await countOf("failed")) === before + 2);
    expect(warned()).toBe(warnings + 1);
    for (const id of ids) await admin.refused(404, "GET", `/admin/recordings/${id}`);
    fault = () => undefined;
    const id = await kept();
    expect((await admin.send("GET", `/admin/recordings/${id}`)).status).toBe(200);
  },
);

test.each<[string, Fault]>([
  ["is away", () => new Response(null, { status: 503 })],
  ["has lost it", () => new Response("<Code>NoSuchKey</Code>", { status: 404 })],
  ["has another object in its place", () => new Response("<html></html>")],
  ["has half of it", (_, object) => new Response(stored.get(object)?.slice(0, 40))],
])("a recording whose bucket %s is still found, and reading it says why it cannot be", async (_, wrong) => {
  const id = await kept();
  fault = (method, object) => (method === "GET" ? wrong(method, object) : undefined);
  const { recordings } = (await admin.get(`/admin/recordings?id=${id}`)) as { recordings: { id: string }[] };
  expect(recordings.map((each) => each.id)).toEqual([id]);
  await admin.refused(503, "GET", `/admin/recordings/${id}`);
  fault = () => undefined;
  expect((await admin.send("GET", `/admin/recordings/${id}`)).status).toBe(200);
});

test("a replay of recordings whose bucket is away says so for each of them, and asks nothing", async () => {
  const id = await kept();
  fault = () => new Response(null, { status: 503 });
  const asks = backend.requests.length;
  const { id: replay } = await admin.ok("POST", "/admin/replays", { recordings: id, model: "m" });
  const over = await waitFor("it is over", async () => {
    const told = await admin.get(`/admin/replays/${replay}`);
    return told.status !== "running" && told;
  });
  expect(over).toMatchObject({ status: "completed", done: 1, total: 1, replayed: { failed: 1 } });
  expect(over.items).toMatchObject([
    { recorded: { status: 200 }, replayed: null, reason: expect.stringContaining("storage") },
  ]);
  expect(backend.requests).toHaveLength(asks);
});

test("an export breaks off where the bucket is away, and does not seem whole", async () => {
  await kept();
  fault = () => new Response(null, { status: 503 });
  const read = gateway
    .fetch("/admin/recordings/export")
    .then(async (response) => `${response.status} ${await response.text()}`)
    .catch(() => "broken");
  expect(await read).toBe("broken");
});

test("objects of deleted recordings are removed once the bucket is there again", async () => {
  const id = await kept();
  const left = () => [...stored.keys()].some((object) => object.endsWith(id));
  expect(left()).toBe(true);
  fault = (method) => (method === "DELETE" ? new Response(null, { status: 503 }) : undefined);
  await admin.send("DELETE", `/admin/recordings?id=${id}`);
  await waitFor("the log says that it stays", () =>
    gateway.printed.stderr.includes("old recordings could not be removed"),
  );
  await admin.refused(404, "GET", `/admin/recordings/${id}`);
  fault = () => undefined;
  const other = await kept();
  await admin.send("DELETE", `/admin/recordings?id=${other}`);
  await waitFor("the object is gone", () => !left());
});
