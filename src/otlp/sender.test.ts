// What is done with a request that the receiver does not take, over real sockets.

import { afterAll, beforeEach, expect, test } from "bun:test";
import type { OtlpEncoding } from "./data.ts";
import { createSender, type ExportDestination } from "./sender.ts";

const encoding: OtlpEncoding = {
  contentType: "application/x-test",
  spans: () => ({ size: 0, add() {}, take: () => new Uint8Array() }),
  metrics: () => new Uint8Array(),
  partialSuccess: (answer) => (answer.length === 0 ? undefined : { rejected: answer.length, message: "x".repeat(500) }),
};
const outgoing = { body: new TextEncoder().encode("what is sent"), encoding };

let answers: (() => Response)[] = [];
let received: { path: string; headers: Headers; text: string }[] = [];
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const sent = new Uint8Array(await request.arrayBuffer());
    const isPacked = request.headers.get("content-encoding") === "gzip";
    const text = new TextDecoder().decode(isPacked ? Bun.gunzipSync(sent) : sent);
    received.push({ path: new URL(request.url).pathname, headers: request.headers, text });
    return (answers.shift() ?? (() => new Response()))();
  },
});

beforeEach(() => {
  answers = [];
  received = [];
});

afterAll(() => server.stop(true));

const place = (path = "/v1/traces"): ExportDestination => ({
  url: `http://127.0.0.1:${server.port}${path}`,
  headers: { "X-Key": "k" },
});

function sending(destination: () => ExportDestination | undefined = () => place()) {
  const lines: [string, Record<string, unknown>][] = [];
  const exports: boolean[] = [];
  let nowMs = 0;
  const sender = createSender({
    signal: "traces",
    destination,
    log: {
      info: (fields: object) => void lines.push(["info", fields as Record<string, unknown>]),
      warn: (fields: object) => void lines.push(["warn", fields as Record<string, unknown>]),
    } as never,
    exported: (isOk) => void exports.push(isOk),
    // A minute is over soon: each look at the clock takes a quarter of it.
    clock: { now: () => (nowMs += 15_000), wallTime: () => Date.parse("2026-11-22T00:00:00Z") },
    random: () => 0,
  });
  return { sender, lines, exports };
}

const never = new AbortController().signal;
const soon = (status: number) => () => new Response(null, { status, headers: { "Retry-After": "0" } });

/** Leads to this machine, too, but is no address of it. */
const far = (): ExportDestination => ({ url: `http://0.0.0.0:${server.port}/v1/traces`, headers: { "X-Key": "k" } });

test("a request is packed unless it stays on this machine, whatever the configuration says when it is tried again", async () => {
  const places = [far(), place(), far()];
  const { sender } = sending(() => places.shift());
  answers = [soon(503), soon(503)];
  expect(await sender.send(outgoing, never)).toBe(true);
  expect(received.map(({ headers }) => headers.get("content-encoding"))).toEqual(["gzip", null, "gzip"]);
  expect(received.map(({ text }) => text)).toEqual(Array(3).fill("what is sent"));
});

test("a request says what it is", async () => {
  const { sender, lines, exports } = sending(far);
  expect(await sender.send(outgoing, never)).toBe(true);
  expect(received).toMatchObject([{ path: "/v1/traces", text: "what is sent" }]);
  const { headers } = received[0] as (typeof received)[0];
  expect([headers.get("content-type"), headers.get("content-encoding"), headers.get("x-key")]).toEqual([
    "application/x-test",
    "gzip",
    "k",
  ]);
  expect([exports, lines, sender.isUp()]).toEqual([[true], [], true]);
});

test.each([429, 502, 503, 504])("status %i is tried again, with the same bytes", async (status) => {
  answers = [soon(status), soon(status)];
  const { sender, exports } = sending();
  expect(await sender.send(outgoing, never)).toBe(true);
  expect(received.map(({ text }) => text)).toEqual(Array(3).fill("what is sent"));
  expect(exports).toEqual([false, false, true]);
});

test.each([301, 400, 401, 403, 404, 408, 413, 500, 501])("status %i is not", async (status) => {
  answers = [soon(status)];
  const { sender, lines } = sending();
  expect(await sender.send(outgoing, never)).toBe(false);
  expect(received).toHaveLength(1);
  expect(lines).toEqual([["warn", { signal: "traces", reason: `status_${status}` }]]);
});

test("a date is understood, too, and a wait that is too long is not waited", async () => {
  answers = [() => new Response(null, { status: 503, headers: { "Retry-After": "Sun, 22 Nov 2026 01:00:00 GMT" } })];
  const { sender } = sending();
  expect(await sender.send(outgoing, never)).toBe(false);
  expect(received).toHaveLength(1);
});

test("after a minute it is given up", async () => {
  answers = Array.from({ length: 20 }, () => soon(503));
  const { sender, exports } = sending();
  expect(await sender.send(outgoing, never)).toBe(false);
  expect(exports.length).toBeLessThan(6);
});

test("the log tells of the first failure and of the return, whatever lies between", async () => {
  const { sender, lines } = sending();
  for (let each = 0; each < 3; each++) {
    answers = [soon(400)];
    await sender.send(outgoing, never);
  }
  expect(sender.isUp()).toBe(false);
  await sender.send(outgoing, never);
  await sender.send(outgoing, never);
  expect(lines.map(([level]) => level)).toEqual(["warn", "info"]);
});

test("a new place of the configuration is tried at once", async () => {
  let path = "/old";
  const { sender } = sending(() => place(path));
  answers = [() => new Response(null, { status: 503, headers: { "Retry-After": "10" } })];
  const sent = sender.send(outgoing, never);
  while (received.length === 0) await Bun.sleep(1);
  await Bun.sleep(20); // for its answer, which nothing tells of
  path = "/new";
  sender.wake();
  expect(await sent).toBe(true);
  expect(received.map(({ path }) => path)).toEqual(["/old", "/new"]);
});

test("nowhere any more, or the end: nothing is sent", async () => {
  const { sender } = sending(() => undefined);
  expect(await sender.send(outgoing, never)).toBe(false);
  expect(await sending().sender.send(outgoing, AbortSignal.abort())).toBe(false);
  expect(received).toEqual([]);
});

test("the end aborts a wait, and nothing is told of that", async () => {
  const stop = new AbortController();
  const { sender, lines } = sending();
  answers = [() => new Response(null, { status: 503, headers: { "Retry-After": "10" } })];
  const sent = sender.send(outgoing, stop.signal);
  while (lines.length === 0) await Bun.sleep(1);
  stop.abort();
  expect(await sent).toBe(false);
  expect(lines).toHaveLength(1);
});

test("once the process ends, a receiver that is away is asked twice at most", async () => {
  answers = Array.from({ length: 9 }, () => soon(503));
  const { sender } = sending();
  sender.hurry();
  expect(await sender.send(outgoing, never)).toBe(false);
  expect(received).toHaveLength(2);
});

test("what was not taken of a request is told once, shortened", async () => {
  const { sender, lines } = sending();
  for (let each = 0; each < 2; each++) {
    answers = [() => new Response("abc")];
    expect(await sender.send(outgoing, never)).toBe(true);
  }
  expect(lines).toEqual([["warn", { signal: "traces", rejected: 3, told: "x".repeat(200) }]]);
});

test("nobody there: a reason without any address", async () => {
  const { sender, lines } = sending(() => ({ url: "http://127.0.0.1:9/v1/traces", headers: {} }));
  sender.hurry();
  expect(await sender.send(outgoing, never)).toBe(false);
  expect(lines).toHaveLength(1);
  expect(JSON.stringify(lines)).not.toContain("127.0.0.1");
});
