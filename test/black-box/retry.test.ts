// Retry: which failures are tried again, where, after which wait, and which errors are handed on as they are.

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { expectError } from "../support/expect-error.ts";
import type { Answer } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, failure, html } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

const RETRYABLE: Record<string, Answer> = {
  "429": failure(429),
  "502": failure(502),
  "503": failure(503),
  "504": failure(504),
  "a reset before the answer": { breakWith: "reset" },
  "a connection closed without an answer": { rawBytes: "" },
  "half a body": { body: '{"id":"x", "choices": [', contentLength: 500 },
};

describe("two backends of one model", () => {
  const bad = bed.backend();
  const good = bed.backend();
  let gateway: Gateway;

  beforeAll(async () => {
    gateway = await bed.gateway({
      config: {
        routing: { selection_strategy: "WeightedRoundRobin" },
        retry: { base_delay: "1ms", max_delay: "50ms" },
        health_checks: { enabled: false },
        backends: [
          // Weight 0 stands by, so the first attempt always meets the bad one.
          { name: "bad", url: bad.url, models: ["m"], weight: 1 },
          { name: "good", url: good.url, models: ["m"], weight: 0 },
        ],
      },
    });
  });

  beforeEach(() => {
    bad.start();
    bad.reset(chat("bad"));
    good.reset(chat("good"));
  });

  for (const [name, answer] of Object.entries(RETRYABLE)) {
    test(`after ${name} the other backend answers`, async () => {
      bad.reset(answer);
      const response = await gateway.chat();
      expect(response.status).toBe(200);
      expect(response.headers.get("x-signalbox-backend")).toBe("good");
      expect(await response.text()).toBe(chat("good").body as string);
      expect(good.requests).toHaveLength(1);
      expect(good.lastRequest.text).toBe(bad.lastRequest.text);
    });
  }

  test("a backend that refuses connections is passed over", async () => {
    bad.stop();
    for (let count = 0; count < 5; count++) {
      expect((await gateway.chat()).headers.get("x-signalbox-backend")).toBe("good");
    }
  });

  test("every attempt carries the same trace id", async () => {
    bad.reset(failure(503));
    const response = await gateway.chat({}, { headers: { "X-Trace-ID": "one-and-the-same" } });
    expect(response.headers.get("x-trace-id")).toBe("one-and-the-same");
    const ids = [...bad.requests, ...good.requests].map((request) => request.headers["x-trace-id"]);
    expect(ids.length).toBeGreaterThanOrEqual(2);
    expect(new Set(ids)).toEqual(new Set(["one-and-the-same"]));
  });

  test("an error of the client's own is not tried again and keeps message, type, param and code", async () => {
    for (const status of [400, 404, 409, 413, 422]) {
      bad.reset({
        status,
        body: '{ "error": {"message":"too long","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"} }',
      });
      const response = await gateway.chat();
      const error = await expectError(response, status);
      expect(error).toMatchObject({
        message: "too long",
        type: "invalid_request_error",
        param: "messages",
        code: "context_length_exceeded",
      });
      expect(bad.requests).toHaveLength(1);
      expect(good.requests).toHaveLength(0);
    }
  });

  test("an error with an integer code and extra fields is handed on", async () => {
    bad.reset(
      failure(400, "the request exceeds the context", { code: 400, type: "exceed_context_size_error", n_ctx: 4096 }),
    );
    const error = await expectError(await gateway.chat(), 400);
    expect(error).toMatchObject({
      code: 400,
      type: "exceed_context_size_error",
      message: "the request exceeds the context",
    });
  });

  test("a 400 that cannot be read becomes the fallback error", async () => {
    for (const answer of [html(400), { status: 400, body: "" }, { status: 400, body: "{broken" }]) {
      bad.reset(answer);
      const error = await expectError(await gateway.chat(), 400);
      expect(error).toMatchObject({ code: 400, type: "invalid_request_error", message: "Client error: HTTP 400" });
    }
  });

  test("other error shapes of engines are understood", async () => {
    bad.reset({
      status: 400,
      body: '{"object":"error","message":"bad thing","type":"BadRequestError","param":null,"code":400}',
    });
    expect((await expectError(await gateway.chat(), 400)).message).toBe("bad thing");
    bad.reset({ status: 404, body: '{"error":"model not loaded"}' });
    expect((await expectError(await gateway.chat(), 404)).message).toBe("model not loaded");
  });

  test("a 500 of a backend is not tried again and is a server error for the client", async () => {
    bad.reset(failure(500, "out of memory"));
    const error = await expectError(await gateway.chat(), [500, 502]);
    expect(error.message).toContain("out of memory");
    expect(bad.requests).toHaveLength(1);
    expect(good.requests).toHaveLength(0);
  });

  test("an error inside a 200 answer counts as an error", async () => {
    bad.reset({
      status: 200,
      body: '{"error":{"message":"context overflow","type":"invalid_request_error","code":400}}',
    });
    const error = await expectError(await gateway.chat(), 400);
    expect(error.message).toBe("context overflow");
    bad.reset({ status: 200, body: '{"error":{"message":"overloaded","code":503}}' });
    expect((await gateway.chat()).headers.get("x-signalbox-backend")).toBe("good");
  });
});

describe("one backend", () => {
  const only = bed.backend();
  let gateway: Gateway;

  beforeAll(async () => {
    gateway = await bed.gateway({
      config: {
        retry: { base_delay: "1ms", max_delay: "50ms", max_attempts: 3 },
        health_checks: { enabled: false },
        backends: [{ name: "only", url: only.url, models: ["m"] }],
      },
    });
  });

  beforeEach(() => {
    only.start();
    only.reset(chat("at last"));
  });

  test("it is asked again, and the third attempt may succeed", async () => {
    only.queue(failure(503), { breakWith: "reset" });
    expect((await gateway.chat()).status).toBe(200);
    expect(only.requests).toHaveLength(3);
  });

  test("after max_attempts the last error is told, 429 as 429 with its Retry-After", async () => {
    only.reset({ ...failure(429, "slow down", { code: "rate_limit_exceeded" }), headers: { "Retry-After": "7" } });
    const response = await gateway.chat();
    const error = await expectError(response, 429);
    expect(error).toMatchObject({ message: "slow down", code: "rate_limit_exceeded" });
    expect(response.headers.get("retry-after")).toBe("7");
    expect(only.requests).toHaveLength(3);
  });

  test("a backend in trouble to the end is 502, 503 or 504, never a success", async () => {
    for (const [answer, statuses] of [
      [failure(503), [503, 502]],
      [failure(502), [502]],
      [failure(504), [504]],
      [{ breakWith: "reset" } as Answer, [502]],
    ] as const) {
      only.reset(answer);
      await expectError(await gateway.chat(), statuses);
      // A kept connection that dies before a byte of the answer is replaced once, whatever max_attempts says.
      const replaced = "breakWith" in answer ? 1 : 0;
      expect([3, 3 + replaced]).toContain(only.requests.length);
    }
    only.stop();
    await expectError(await gateway.chat(), [502, 503]);
  });

  test("a Retry-After longer than max_delay is not waited for in full", async () => {
    only.queue({ ...failure(429), headers: { "Retry-After": "60" } });
    const startedMs = performance.now();
    const response = await gateway.chat();
    await response.text();
    expect([200, 429]).toContain(response.status);
    expect(performance.now() - startedMs).toBeLessThan(10_000);
  });

  test("an SDK is told not to repeat what was repeated already", async () => {
    only.reset(failure(503));
    const response = await gateway.chat();
    await response.text();
    expect(response.headers.get("x-should-retry")).toBe("false");
  });
});

test("Retry-After is honoured before the same backend is asked again", async () => {
  const backend = bed.backend();
  await using gateway = await startGateway({
    config: {
      retry: { base_delay: "1ms", max_delay: "5s" },
      backends: [{ name: "a", url: backend.url, models: ["m"] }],
    },
  });
  backend.queue({ ...failure(429), headers: { "Retry-After": "1" } });
  expect((await gateway.chat()).status).toBe(200);
  const [first, second] = backend.requests;
  expect((second?.receivedAtMs ?? 0) - (first?.receivedAtMs ?? 0)).toBeGreaterThanOrEqual(950);
});

test("the wait grows with every failure", async () => {
  const backend = bed.backend({ answer: failure(503) });
  await using gateway = await startGateway({
    config: {
      retry: { base_delay: "40ms", max_delay: "1s", backoff_multiplier: 4, jitter: false, max_attempts: 3 },
      backends: [{ name: "a", url: backend.url, models: ["m"] }],
    },
  });
  await (await gateway.chat()).text();
  const times = backend.requests.map((request) => request.receivedAtMs);
  expect(times).toHaveLength(3);
  expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(35);
  expect((times[2] ?? 0) - (times[1] ?? 0)).toBeGreaterThanOrEqual(150);
});

test("max_attempts 1 means one attempt; retry_override of a backend wins", async () => {
  const single = bed.backend({ answer: failure(503) });
  const stubborn = bed.backend({ answer: failure(503) });
  await using gateway = await startGateway({
    config: {
      retry: { max_attempts: 1, base_delay: "1ms" },
      backends: [
        { name: "single", url: single.url, models: ["one"] },
        { name: "stubborn", url: stubborn.url, models: ["many"], retry_override: { max_attempts: 4 } },
      ],
    },
  });
  await (await gateway.chat({ model: "one" })).text();
  expect(single.requests).toHaveLength(1);
  await (await gateway.chat({ model: "many" })).text();
  expect(stubborn.requests).toHaveLength(4);
});

test("retry.status_codes says which answers are retried; retry_override of a backend wins", async () => {
  const failing = bed.backend();
  const own = bed.backend();
  const good = bed.backend({ answer: chat("good") });
  await using gateway = await startGateway({
    config: {
      routing: { selection_strategy: "WeightedRoundRobin" },
      retry: { base_delay: "1ms", status_codes: [500, 404] },
      health_checks: { enabled: false },
      backends: [
        { name: "failing", url: failing.url, models: ["m"] },
        { name: "own", url: own.url, models: ["n"], retry_override: { status_codes: [400] } },
        { name: "good", url: good.url, models: ["m", "n"], weight: 0 },
      ],
    },
  });
  for (const [status, expected] of [
    [500, 200],
    [404, 200],
    [503, 503],
    [429, 429],
  ] as const) {
    failing.reset(failure(status));
    const response = await gateway.chat();
    await response.text();
    expect(response.status).toBe(expected);
  }
  own.reset(failure(400));
  expect((await gateway.chat({ model: "n" })).status).toBe(200);
  own.reset(failure(500));
  expect((await gateway.chat({ model: "n" })).status).toBe(500);
});

test("with three backends each is asked once before one is asked twice", async () => {
  const backends = ["a", "b", "c"].map((name) => ({ name, backend: bed.backend({ answer: failure(503) }) }));
  await using gateway = await startGateway({
    config: {
      retry: { max_attempts: 3, base_delay: "1ms" },
      health_checks: { enabled: false },
      backends: backends.map(({ name, backend }) => ({ name, url: backend.url, models: ["m"] })),
    },
  });
  await (await gateway.chat()).text();
  expect(backends.map(({ backend }) => backend.requests.length)).toEqual([1, 1, 1]);
});

test("text completions and embeddings are retried like chats", async () => {
  const backend = bed.backend();
  await using gateway = await startGateway({
    config: { retry: { base_delay: "1ms" }, backends: [{ name: "a", url: backend.url, models: ["m"] }] },
  });
  for (const [path, body] of [
    ["/v1/completions", { model: "m", prompt: "x" }],
    ["/v1/embeddings", { model: "m", input: "x" }],
  ] as const) {
    backend.reset();
    backend.queue(failure(503));
    expect((await gateway.post(path, body)).status).toBe(200);
    expect(backend.requests).toHaveLength(2);
  }
});

test("a backend that dies under load costs no request that another backend can answer", async () => {
  const dying = bed.backend({ answer: { ...chat("dying"), beforeHeadersMs: 40 } });
  const other = bed.backend({ answer: { ...chat("other"), beforeHeadersMs: 5 } });
  await using gateway = await startGateway({
    config: {
      retry: { base_delay: "1ms" },
      backends: [
        { name: "dying", url: dying.url, models: ["m"] },
        { name: "other", url: other.url, models: ["m"] },
      ],
    },
  });
  const pending = Array.from({ length: 100 }, () => gateway.chat());
  await waitFor("both backends are busy", () => dying.requests.length >= 20 && other.requests.length >= 20);
  dying.stop();
  const responses = await Promise.all(pending);
  for (const response of responses) {
    await response.text();
    expect(response.status).toBe(200);
  }
  await gateway.waitUntilIdle();
});
