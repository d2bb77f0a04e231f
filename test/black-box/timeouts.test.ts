// Timeouts: every phase of an exchange with a backend ends in 504 when it takes too long, streams included.

import { beforeAll, beforeEach, expect, test } from "bun:test";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { chat, chatEvents, chatStream, failure } from "../support/openai-answers.ts";
import { pendingConnects } from "../support/pending-connects.ts";
import { postBytes, RawConnection } from "../support/raw-http.ts";
import { startSilentHost } from "../support/silent-host.ts";
import { readSse } from "../support/sse-reader.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor, within } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
let gateway: Gateway;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      retry: { max_attempts: 1 },
      health_checks: { enabled: false },
      timeouts: {
        first_byte: "250ms",
        between_chunks: "250ms",
        request: "10s",
        models: {
          endless: { request: "1200ms" },
          patient: { first_byte: "10s", between_chunks: "10s" },
          hasty: { request: "200ms" },
        },
      },
      backends: [{ name: "a", url: backend.url, models: ["m", "patient", "hasty", "endless"] }],
    },
  });
});

beforeEach(() => backend.reset(chat("hello")));

const never = (): Promise<void> => new Promise(() => {});

test("no byte within first_byte is 504, and the backend's connection is closed", async () => {
  for (const stream of [false, true]) {
    backend.reset({ hang: true });
    const error = await expectError(await gateway.chat({ stream }), 504);
    expect(error.message).toMatch(/first_byte|in time/);
    await within("the connection closes", backend.lastRequest.closed);
  }
});

test("a first_byte far below the connect timeout is kept", async () => {
  backend.reset({ hang: true });
  const startedMs = performance.now();
  const error = await expectError(await gateway.chat(), 504);
  expect(error.message).toContain("first_byte");
  const tookMs = performance.now() - startedMs;
  expect(tookMs).toBeGreaterThanOrEqual(240);
  expect(tookMs).toBeLessThan(2_000);
});

test("headers alone are no first byte of a stream", async () => {
  backend.reset(chatStream(["one"], {}, { beforeChunk: never }));
  await expectError(await gateway.chat({ stream: true }), 504);
});

test("silence in the middle of a plain answer is 504", async () => {
  const { body } = chat("hello");
  backend.reset({
    body: [String(body).slice(0, 20), String(body).slice(20)],
    beforeChunk: (i) => (i ? never() : undefined),
  });
  await expectError(await gateway.chat(), 504);
});

test("silence in the middle of a stream becomes an error event", async () => {
  const events = chatEvents(["one", "two"]);
  backend.reset(chatStream(["one", "two"], {}, { beforeChunk: (i) => (i === 2 ? never() : undefined) }));
  const reading = await readSse(await gateway.chat({ stream: true }));
  expect(reading.events.slice(0, 2).map((event) => event.raw)).toEqual(events.slice(0, 2));
  expect(reading.events).toHaveLength(3);
  const { error } = JSON.parse(reading.data.at(-1) ?? "{}") as { error: { type: string; message: string } };
  expect(error.type).toBe("backend_timeout");
  expect(error.message).toContain("between_chunks");
  await within("the connection closes", backend.lastRequest.closed);
});

test("a stream that is slow, but never silent for too long, goes on beyond first_byte and between_chunks", async () => {
  backend.reset(chatStream(["1", "2", "3", "4", "5"], {}, { betweenChunksMs: 80 }));
  const reading = await readSse(await gateway.chat({ stream: true }));
  expect(reading.text).toBe(chatEvents(["1", "2", "3", "4", "5"]).join(""));
});

test("the time for the whole request ends a stream that never ends", async () => {
  backend.reset(
    chatStream(
      Array.from({ length: 1_000 }, () => "x"),
      {},
      { betweenChunksMs: 50 },
    ),
  );
  const startedMs = performance.now();
  const reading = await readSse(await gateway.chat({ stream: true, model: "endless" }));
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(1_000);
  expect(reading.data).not.toContain("[DONE]");
  expect(reading.data.at(-1)).toContain('"error"');
  await within("the connection closes", backend.lastRequest.closed);
});

test("a client that stops reading for good holds nothing beyond the time for the whole request", async () => {
  backend.reset(chatStream(Array.from({ length: 2_000 }, () => "x".repeat(20_000))));
  const connection = await RawConnection.open(gateway.port);
  const body = { model: "endless", stream: true, messages: [{ role: "user", content: "hi" }] };
  connection.write(postBytes("/v1/chat/completions", JSON.stringify(body)));
  await waitFor("the stream begins", () => connection.received.length > 0);
  connection.pause();
  try {
    await within("the backend's connection closes", backend.lastRequest.closed);
    expect(backend.lastRequest.answerComplete).toBe(false);
    await gateway.waitUntilIdle();
  } finally {
    connection.abort();
  }
});

test("a model may have more patience, or less", async () => {
  backend.reset({ ...chat("late"), beforeHeadersMs: 500 });
  expect((await gateway.chat({ model: "patient" })).status).toBe(200);
  backend.reset({ hang: true });
  const startedMs = performance.now();
  await expectError(await gateway.chat({ model: "hasty" }), 504);
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(180);
});

test("a timeout is retried on another backend before the client sees it", async () => {
  const silent = bed.backend({ answer: { hang: true } });
  await using other = await startGateway({
    config: {
      routing: { selection_strategy: "WeightedRoundRobin" },
      retry: { base_delay: "1ms" },
      timeouts: { first_byte: "200ms" },
      backends: [
        { name: "silent", url: silent.url, models: ["m"] },
        { name: "good", url: backend.url, models: ["m"], weight: 0 },
      ],
    },
  });
  const response = await other.chat();
  expect(response.status).toBe(200);
  expect(response.headers.get("x-signalbox-backend")).toBe("good");
  await within("the silent backend is let go", silent.lastRequest.closed);
});

test("retries do not outlast the time of the whole request", async () => {
  await using other = await startGateway({
    config: {
      retry: { max_attempts: 20, base_delay: "100ms", jitter: false },
      timeouts: { request: "600ms" },
      backends: [{ name: "a", url: backend.url, models: ["m"] }],
    },
  });
  backend.reset(failure(503));
  const startedMs = performance.now();
  const response = await other.chat();
  await expectError(response, [502, 503, 504]);
  expect(performance.now() - startedMs).toBeLessThan(10_000);
  expect(backend.requests.length).toBeLessThan(20);
});

test("a host that does not complete the connection is 504 or 502 after the connect timeout", async () => {
  await using silent = await startSilentHost();
  if (silent === undefined) return; // this system accepts connections on behalf of a busy process without limit
  await using other = await startGatewayProcess({
    awaitHealth: false,
    config: {
      retry: { max_attempts: 1 },
      health_checks: { enabled: false, timeout: "400ms" },
      timeouts: { connect: "400ms", first_byte: "60s" },
      backends: [{ name: "far", url: silent.url, models: ["m"] }],
    },
  });
  const response = await within("the gateway gives up", other.chat(), 10_000);
  const error = await expectError(response, [504, 502]);
  expect(error.message).toContain("far");
  const port = Number(new URL(silent.url).port);
  await waitFor("nothing is left of the attempt", () => !pendingConnects(other.pid, port));
});

test("attempts to connect end with their clients", async () => {
  await using silent = await startSilentHost();
  if (silent === undefined || pendingConnects(process.pid, 1) === undefined) return;
  const port = Number(new URL(silent.url).port);
  await using other = await startGatewayProcess({
    awaitHealth: false,
    config: {
      health_checks: { enabled: false, timeout: "400ms" }, // also of the model list
      timeouts: { connect: "60s" },
      backends: [{ name: "far", url: silent.url, models: ["m"] }],
    },
  });
  const leaving = new AbortController();
  const asked = Array.from({ length: 20 }, () => other.chat({}, { signal: leaving.signal }).catch(() => {}));
  await waitFor("all are connecting", () => (pendingConnects(other.pid, port) ?? 0) >= asked.length);
  leaving.abort();
  await waitFor("nothing is left of them", () => pendingConnects(other.pid, port) === 0);
  await Promise.all(asked);
});

test("a slow backend that accepts at once is not mistaken for a dead host", async () => {
  await using other = await startGateway({
    config: {
      retry: { max_attempts: 1 },
      timeouts: { connect: "100ms", first_byte: "10s" },
      backends: [{ name: "a", url: backend.url, models: ["m"] }],
    },
  });
  backend.reset({ ...chat("thought about it"), beforeHeadersMs: 600 });
  expect((await other.chat()).status).toBe(200);
  await waitFor("nothing is left", () => backend.busyConnections === 0);
});
