// Message Batches: what is refused and how, whose batches callers see, and how one ends before its time.

import { beforeAll, describe, expect, test } from "bun:test";
import type { Gateway } from "../support/gateway.ts";
import { chat } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const engine = bed.backend();
let gateway: Gateway;

const PATH = "/anthropic/v1/messages/batches";
const FIRST = { "x-api-key": "sekret-first-key" };
const SECOND = { "x-api-key": "sekret-second-key" };

const KEYS = {
  mode: "blocking" as const,
  keys: [
    { key: "sekret-first-key", id: "first" },
    { key: "sekret-second-key", id: "second" },
    { key: "sekret-reader-key", id: "reader", scopes: ["read" as const] },
  ],
};

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      backends: [
        { name: "demo", type: "demo" },
        { name: "engine", type: "vllm", url: engine.url, models: ["engine"] },
      ],
      health_checks: { enabled: false },
      api_keys: KEYS,
      batches: { max_lines: 300, max_bytes: 2_000_000 },
    },
  });
});

const params = (model = "demo") => ({ model, max_tokens: 16, messages: [{ role: "user", content: "Hello!" }] });
const asked = (custom_id: unknown, change: object = {}) => ({ custom_id, params: params(), ...change });

interface Answered {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: what comes is what is tested
  body: any;
}

async function ask(path: string, init: RequestInit = {}, from = gateway): Promise<Answered> {
  const response = await from.fetch(path, { ...init, headers: { ...FIRST, ...init.headers } });
  const text = await response.text();
  return { status: response.status, body: text.startsWith("{") && !text.includes("\n") ? JSON.parse(text) : text };
}

const create = (requests: unknown, from = gateway) =>
  ask(PATH, { method: "POST", body: JSON.stringify({ requests }) }, from);

async function created(requests: unknown, from = gateway): Promise<string> {
  const { status, body } = await create(requests, from);
  expect([status, body]).toEqual([200, expect.objectContaining({ type: "message_batch" })]);
  return body.id;
}

async function whenEnded(id: string, from = gateway): Promise<Answered["body"]> {
  let body: Answered["body"];
  await waitFor("the batch has ended", async () => {
    ({ body } = await ask(`${PATH}/${id}`, {}, from));
    return body.processing_status === "ended";
  });
  return body;
}

async function resultsOf(id: string, from = gateway): Promise<{ custom_id: string; result: { type: string } }[]> {
  const { status, body } = await ask(`${PATH}/${id}/results`, {}, from);
  expect(status).toBe(200);
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

function expectRefusal({ status, body }: Answered, expected: number, told: string | RegExp): void {
  expect([status, body.error?.message]).toEqual([expected, expect.stringMatching(told)]);
  expect(body).toMatchObject({ type: "error", error: { type: expect.any(String) }, request_id: expect.any(String) });
}

describe("a batch is refused", () => {
  test.each([
    ["without requests", [], "requests"],
    ["with the same custom_id twice", [asked("a"), asked("b"), asked("a")], /^requests\.2: custom_id "a".*unique/],
    ["with an empty custom_id", [asked("a"), asked("")], /^requests\.1: custom_id must be a text of 1 to 64/],
    ["with a custom_id of other characters", [asked("a b")], /^requests\.0: custom_id/],
    ["with a long custom_id", [asked("x".repeat(65))], /^requests\.0: custom_id/],
    ["with a number as custom_id", [asked(1)], /^requests\.0: custom_id/],
    ["without params", [{ custom_id: "a" }], /^requests\.0: params must be the object/],
    ["with another member", [asked("a", { method: "POST" })], /^requests\.0: method is not known/],
    ["with a stream", [asked("a", { params: { ...params(), stream: true } })], /^requests\.0: params\.stream must not/],
    ["with what is no object", [asked("a"), "b"], /requests\[1\]/],
    ["with what is no list", "a", /needs a list as 'requests'/],
  ])("%s", async (_, requests, told) => {
    expectRefusal(await create(requests), 400, told);
    const { body } = await ask(PATH);
    expect(body.data).toEqual([]);
  });

  test.each([
    ["that is no JSON", "x", 400, "JSON object"],
    ["that is empty", "", 400, "ends too early"],
    ["that is cut off", '{"requests":[{"custom_id":"a"', 400, "ends too early"],
    ["with an invalid request", '{"requests":[{"custom_id":"a",}]}', 400, /^requests\.0: .*JSON/],
    ["with another member", '{"requests":[],"model":"demo"}', 400, "only member"],
    [
      "with too many requests",
      JSON.stringify({ requests: Array.from({ length: 301 }, (_, index) => asked(`${index}`)) }),
      413,
      "300",
    ],
    ["that is too large", JSON.stringify({ requests: [asked("a", { params: "x".repeat(2_000_000) })] }), 413, "larger"],
  ])("by a body %s", async (_, body, status, told) => {
    expectRefusal(await ask(PATH, { method: "POST", body }), status, told);
  });

  test("by an encoded body, and without the scope", async () => {
    const headers = { "content-encoding": "gzip" };
    expectRefusal(await ask(PATH, { method: "POST", body: "x", headers }), 400, "uncompressed");
    expectRefusal(
      await ask(PATH, { method: "POST", body: "{}", headers: { "x-api-key": "sekret-reader-key" } }),
      403,
      "",
    );
    expectRefusal(
      await ask(PATH, { method: "POST", body: "{}", headers: { "x-api-key": "sekret-other-key" } }),
      401,
      "",
    );
  });
});

test("a body that arrives in pieces is read as it comes", async () => {
  const bytes = new TextEncoder().encode(
    JSON.stringify({ requests: [asked("é-1".replace("é", "e")), asked("b")] }, null, 2),
  );
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  const { body: batch } = await ask(PATH, { method: "POST", body });
  expect(batch.request_counts.processing).toBe(2);
  expect((await whenEnded(batch.id)).request_counts.succeeded).toBe(2);
});

test("another owner's batch, another API's and none are the same", async () => {
  const id = await created([asked("a")]);
  await whenEnded(id);
  for (const [method, path] of [
    ["GET", `${PATH}/${id}`],
    ["POST", `${PATH}/${id}/cancel`],
    ["DELETE", `${PATH}/${id}`],
    ["GET", `${PATH}/${id}/results`],
    ["GET", `${PATH}/msgbatch_none`],
  ] as const) {
    expectRefusal(await ask(path, { method, headers: SECOND }), 404, "there is no such batch");
  }
  expect((await ask(PATH, { headers: SECOND })).body).toEqual({
    data: [],
    first_id: null,
    last_id: null,
    has_more: false,
  });
  expect((await ask(`/v1/batches/${id}`)).status).toBe(404);
  const { body: files } = await ask("/v1/files");
  expect(files.data).toEqual([]);
  const { body: others } = await ask("/v1/batches");
  expect(others.data).toEqual([]);
  expect(await resultsOf(id)).toHaveLength(1);
});

test("a batch is cancelled, keeps the results that it has, and is deleted only then", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let count = 0;
  engine.answer = () => ({ ...chat("hello"), ...(++count > 3 && { headersAfter: promise }) });
  const id = await created(
    Array.from({ length: 50 }, (_, index) => asked(`line-${index}`, { params: params("engine") })),
  );
  await waitFor("three are done, and as many as there may be are under way", () => count === 3 + 16);
  expectRefusal(await ask(`${PATH}/${id}`, { method: "DELETE" }), 400, "cancel it, or wait");
  expectRefusal(await ask(`${PATH}/${id}/results`), 400, "has not ended");
  const { body: cancelled } = await ask(`${PATH}/${id}/cancel`, { method: "POST" });
  expect(cancelled).toMatchObject({ processing_status: "canceling", request_counts: { processing: 50 } });
  expect(cancelled.cancel_initiated_at).toMatch(/Z$/);
  const ended = await whenEnded(id);
  resolve();
  const { succeeded, canceled } = ended.request_counts;
  expect(ended.request_counts).toEqual({ processing: 0, errored: 0, expired: 0, succeeded, canceled });
  expect([succeeded + canceled, succeeded]).toEqual([50, 3]);
  const results = await resultsOf(id);
  expect(new Set(results.map(({ custom_id }) => custom_id)).size).toBe(50);
  expect(results.filter(({ result }) => result.type === "canceled")).toHaveLength(canceled);
  expectRefusal(await ask(`${PATH}/${id}/cancel`, { method: "POST" }), 400, "has ended");
  expect((await ask(`${PATH}/${id}`, { method: "DELETE" })).body).toEqual({ id, type: "message_batch_deleted" });
  expect((await ask(`${PATH}/${id}/results`)).status).toBe(404);
});

test("results are read in ranges, and their address is the one that a proxy names", async () => {
  const id = await created([asked("a"), asked("b")]);
  await whenEnded(id);
  const { body } = await ask(`/v1/messages/batches/${id}`, {
    headers: { "x-forwarded-proto": "https", host: "llm.example" },
  });
  expect(body.results_url).toBe(`https://llm.example/v1/messages/batches/${id}/results`);
  const response = await gateway.fetch(`${PATH}/${id}/results`, { headers: { ...FIRST, range: "bytes=0-9" } });
  expect([response.status, (await response.text()).length]).toEqual([206, 10]);
});

test("without the store of files there are no batches", async () => {
  const other = await bed.gateway({
    config: { backends: [{ name: "demo", type: "demo" }], files: { enabled: false }, api_keys: KEYS },
  });
  expectRefusal(await create([asked("a")], other), 404, "files.enabled");
  await other.close();
});

test("batches and results outlive the process, and workers hand them on", async () => {
  const first = await bed.process({
    config: { backends: [{ name: "demo", type: "demo" }], api_keys: KEYS, server: { workers: 2 } },
  });
  const ids = Array.from({ length: 200 }, (_, index) => `line-${index}`);
  const id = await created(
    ids.map((custom_id) => asked(custom_id)),
    first,
  );
  await first.stop("SIGKILL");
  await first.restart();
  const ended = await whenEnded(id, first);
  expect(ended.request_counts.succeeded).toBe(200);
  const results = await resultsOf(id, first);
  expect(results.map(({ custom_id }) => custom_id).sort()).toEqual(ids.toSorted());
});
