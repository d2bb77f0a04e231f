// A client that leaves, at any moment, frees the backend; no counter leaks. Times are reported, not asserted.

import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatEvents, chatStream, eventStream, failure } from "../support/openai-answers.ts";
import { postBytes, RawConnection } from "../support/raw-http.ts";
import { readUntil } from "../support/sse-reader.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor, within } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
const measured: string[] = [];
let gateway: Gateway;

beforeAll(async () => {
  // A process of its own: 200 clients here and 200 calls there are more than `fetch` makes in one process.
  gateway = await bed.process({
    config: {
      retry: { base_delay: "20s", max_delay: "30s", jitter: false },
      backends: [{ name: "a", url: backend.url, models: ["m"] }],
    },
  });
});

beforeEach(() => backend.reset(chat("hello")));

afterAll(() => {
  for (const line of measured) console.log(line);
});

const CHAT = { model: "m", messages: [{ role: "user", content: "hi" }] };

async function expectFreed(what: string, leftAtMs: number): Promise<void> {
  const request = backend.lastRequest;
  await within("the backend's connection closes", request.closed);
  const tookMs = (request.closedAtMs ?? Number.NaN) - leftAtMs;
  measured.push(`abort ${what}: the backend was free after ${tookMs.toFixed(1)} ms (aim: 50 ms)`);
  expect(request.answerComplete).toBe(false);
  await gateway.waitUntilIdle();
}

for (const leave of ["abort", "close"] as const) {
  for (const stream of [false, true]) {
    test(`a client that leaves by ${leave} before the headers of a ${stream ? "stream" : "plain answer"}`, async () => {
      backend.reset({ hang: true });
      const connection = await RawConnection.open(gateway.port);
      connection.write(postBytes("/v1/chat/completions", JSON.stringify({ ...CHAT, stream })));
      await waitFor("the backend has the request", () => backend.requests.length === 1);
      const leftAtMs = performance.now();
      connection[leave]();
      await expectFreed(`before headers (${leave}, ${stream ? "stream" : "plain"})`, leftAtMs);
    });
  }

  test(`a client that leaves by ${leave} in the middle of a stream`, async () => {
    backend.reset(
      chatStream(["one", "two"], {}, { beforeChunk: (i) => (i === 2 ? new Promise(() => {}) : undefined) }),
    );
    const connection = await RawConnection.open(gateway.port);
    connection.write(postBytes("/v1/chat/completions", JSON.stringify({ ...CHAT, stream: true })));
    await waitFor("the first event arrives", () => connection.received.includes("one"));
    const leftAtMs = performance.now();
    connection[leave]();
    await expectFreed(`mid-stream (${leave})`, leftAtMs);
  });
}

test("a fetch that is aborted between header and body of a plain answer", async () => {
  const { body } = chat("hello");
  backend.reset({ body: [String(body).slice(0, 20), String(body).slice(20)], betweenChunksMs: 60_000 });
  const controller = new AbortController();
  const pending = gateway.chat({}, { signal: controller.signal }).catch(() => undefined);
  await waitFor("the backend has the request", () => backend.requests.length === 1);
  await Bun.sleep(20);
  const leftAtMs = performance.now();
  controller.abort();
  await pending;
  await expectFreed("inside a plain answer", leftAtMs);
});

test("a reader that cancels a busy stream", async () => {
  backend.reset(eventStream(chatEvents(Array.from({ length: 5_000 }, () => "x")), { betweenChunksMs: 1 }));
  const response = await gateway.chat({ stream: true });
  const reader = response.body!.getReader();
  await readUntil(reader, '"content":"x"');
  const leftAtMs = performance.now();
  await reader.cancel();
  await expectFreed("while events flow", leftAtMs);
});

test("a client that stops reading and then leaves", async () => {
  const events = chatEvents(Array.from({ length: 2_000 }, () => "x".repeat(20_000)));
  backend.reset(eventStream(events));
  const connection = await RawConnection.open(gateway.port);
  connection.write(postBytes("/v1/chat/completions", JSON.stringify({ ...CHAT, stream: true })));
  await waitFor("the stream begins", () => connection.received.length > 0);
  connection.pause();
  await Bun.sleep(50);
  const leftAtMs = performance.now();
  connection.abort();
  await expectFreed("while not reading", leftAtMs);
});

test("a client that leaves during a backoff wait ends the waiting, no further attempt is made", async () => {
  backend.reset(failure(503));
  const controller = new AbortController();
  const pending = gateway.chat({}, { signal: controller.signal }).catch(() => undefined);
  await waitFor("the first attempt was answered", () => backend.requests[0]?.answerComplete);
  await waitFor("the attempt is over", async () => (await gateway.backend("a")).in_flight === 0);
  controller.abort();
  await pending;
  await waitFor("the request is in the log as ended", () =>
    gateway.printed.logEntries.some(
      (entry) => entry.msg === "request" && entry.attempts === undefined && entry.status === 499,
    ),
  );
  expect(backend.requests).toHaveLength(1);
  backend.reset(chat("hello"));
  expect((await gateway.chat()).status).toBe(200);
});

test("200 clients that all leave leave nothing behind", async () => {
  backend.reset(chatStream(["one"], {}, { beforeChunk: (i) => (i === 1 ? new Promise(() => {}) : undefined) }));
  const controllers = Array.from({ length: 200 }, () => new AbortController());
  const responses = await Promise.all(
    controllers.map((controller) => gateway.chat({ stream: true }, { signal: controller.signal })),
  );
  expect((await gateway.backend("a")).in_flight).toBe(200);
  const leftAtMs = performance.now();
  for (const controller of controllers) controller.abort();
  await Promise.allSettled(responses.map((response) => response.text()));
  await waitFor("every stream of the backend is closed", () => backend.busyConnections === 0);
  measured.push(`abort of 200 streams: all free after ${(performance.now() - leftAtMs).toFixed(1)} ms`);
  await gateway.waitUntilIdle();
});

test("a client that leaves is not counted as a failure of the backend", async () => {
  const before = await gateway.backend("a");
  backend.reset({ hang: true });
  const controller = new AbortController();
  const pending = gateway.chat({}, { signal: controller.signal }).catch(() => undefined);
  await waitFor("the backend has the request", () => backend.requests.length === 1);
  controller.abort();
  await pending;
  await gateway.waitUntilIdle();
  const after = await gateway.backend("a");
  expect(after.total_requests).toBe(before.total_requests + 1);
  expect(after.failed_requests).toBe(before.failed_requests);
});
