// Model fallback: which failures lead to the next model of the chain, what it receives, and what the client is told
// (specification, Errors, "Model fallback").

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { expectError } from "../support/expect-error.ts";
import type { Answer, FakeBackend } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { runCommand } from "../support/gateway-process.ts";
import { chat, chatEvents, chatStream, failure } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

function fallbackHeaders(response: Response): Record<string, string> {
  return Object.fromEntries([...response.headers].filter(([name]) => /fallback|original-model/.test(name)));
}

describe("a chain of three models", () => {
  const first = bed.backend();
  const second = bed.backend();
  const third = bed.backend();
  let gateway: Gateway;

  beforeAll(async () => {
    gateway = await bed.gateway({
      config: {
        retry: { max_attempts: 1 },
        health_checks: { enabled: false },
        circuit_breaker: { enabled: false },
        timeouts: { first_byte: "300ms" },
        fallback: { fallback_chains: { big: ["middle", "small"], gone: ["small"] } },
        backends: [
          { name: "first", url: first.url, models: ["big"] },
          { name: "second", url: second.url, models: ["middle"], type: "vllm" },
          { name: "third", url: third.url, models: ["small"], type: "openai", api_key: "sk-sekret-third" },
          { name: "off", url: third.url, models: ["gone"], enabled: false },
        ],
      },
    });
  });

  beforeEach(() => {
    for (const backend of [first, second, third]) backend.start();
    first.reset(chat("first"));
    second.reset(chat("second"));
    third.reset(chat("third"));
  });

  const ask = (more: Record<string, unknown> = {}) => gateway.chat({ model: "big", ...more });

  test("the model that was asked for answers without a word of fallback", async () => {
    const response = await ask();
    expect(response.status).toBe(200);
    expect(fallbackHeaders(response)).toEqual({});
    expect(second.requests).toHaveLength(0);
  });

  const triggers: Record<string, [Answer, string]> = {
    "429": [failure(429), "error_code_429"],
    "500": [failure(500), "error_code_500"],
    "502": [failure(502), "error_code_502"],
    "503": [failure(503), "error_code_503"],
    "504": [failure(504), "error_code_504"],
    "a reset": [{ breakWith: "reset" }, "connection_error"],
    "no answer in time": [{ hang: true }, "timeout"],
    "an overload told within 200": [{ body: '{"error":{"message":"overloaded","code":503}}' }, "error_code_503"],
  };
  for (const [name, [answer, reason]] of Object.entries(triggers)) {
    test(`after ${name} the next model answers`, async () => {
      first.reset(answer);
      const response = await ask();
      expect(response.status).toBe(200);
      expect(await response.text()).toBe(chat("second").body as string);
      expect(response.headers.get("x-signalbox-backend")).toBe("second");
      expect(fallbackHeaders(response)).toEqual({
        "x-fallback-used": "true",
        "x-original-model": "big",
        "x-fallback-model": "middle",
        "x-fallback-reason": reason,
        "x-fallback-attempts": "1",
      });
      expect(third.requests).toHaveLength(0);
    });
  }

  test("the chain is walked in its order, and streams fall back before their first event", async () => {
    first.stop();
    second.reset(failure(503));
    third.reset(chatStream(["from", " third"]));
    const response = await ask({ stream: true });
    expect(await response.text()).toBe(chatEvents(["from", " third"]).join(""));
    expect(fallbackHeaders(response)).toEqual({
      "x-fallback-used": "true",
      "x-original-model": "big",
      "x-fallback-model": "small",
      "x-fallback-reason": "connection_error",
      "x-fallback-attempts": "2",
    });
    expect(second.requests).toHaveLength(1);
    expect(third.lastRequest.headers.authorization).toBe("Bearer sk-sekret-third");
  });

  test("a client's own error never falls back", async () => {
    for (const status of [400, 404, 409, 413, 422]) {
      first.reset(failure(status, "your mistake", { type: "invalid_request_error", param: "messages", code: "x" }));
      const response = await ask();
      expect(await expectError(response, status)).toMatchObject({ message: "your mistake", code: "x" });
      expect(fallbackHeaders(response)).toEqual({});
    }
    await expectError(await gateway.chat({ model: "big", temperature: "hot" }), 400);
    expect(second.requests).toHaveLength(0);
    expect(third.requests).toHaveLength(0);
  });

  test("all used up is 503 with every reason", async () => {
    first.stop();
    second.reset(failure(429));
    third.reset({ hang: true });
    const response = await ask();
    const error = await expectError(response, 503);
    expect(response.headers.get("x-should-retry")).toBe("false"); // as after any other use of all attempts
    expect(error).toMatchObject({
      type: "all_fallbacks_exhausted",
      details: {
        original_model: "big",
        attempted_fallbacks: ["middle", "small"],
        failure_reasons: [
          { model: "big", reason: "connection_error" },
          { model: "middle", reason: "error_code_429" },
          { model: "small", reason: "timeout" },
        ],
      },
    });
    await gateway.waitUntilIdle();
  });

  test("a model that no available backend serves falls back too", async () => {
    const response = await gateway.chat({ model: "gone" });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(chat("third").body as string);
    expect(response.headers.get("x-original-model")).toBe("gone");
    expect(response.headers.get("x-fallback-model")).toBe("small");
    expect(response.headers.get("x-fallback-reason")).not.toBeNull();
  });

  test("a model without a chain fails as before", async () => {
    second.reset(failure(503, "busy"));
    const response = await gateway.chat({ model: "middle" });
    expect((await expectError(response, 503)).message).toBe("busy");
    expect(fallbackHeaders(response)).toEqual({});
    await expectError(await gateway.chat({ model: "never-heard-of" }), 404);
  });

  test("the stand-in gets the client's bytes with only the model changed", async () => {
    first.reset(failure(503));
    const body =
      '{ "seed" : 9007199254740993,\n\t"messages":[ {"role":"user","content":"say \\"model\\":\\"big\\" \\u00e9 語"} ],' +
      ' "model" :  "big" , "temperature":1.0, "metadata":{"model":"big"}, "x":[1e2, -0.0, {"model": "big"}] }';
    expect((await gateway.post("/v1/chat/completions", body)).status).toBe(200);
    expect(first.lastRequest.text).toBe(body);
    expect(second.lastRequest.text).toBe(body.replace('"model" :  "big"', '"model" :  "middle"'));
  });

  test("text completions and embeddings fall back as well", async () => {
    first.reset(failure(500));
    for (const [path, body] of [
      ["/v1/completions", { model: "big", prompt: "x" }],
      ["/v1/embeddings", { model: "big", input: "x" }],
    ] as const) {
      second.reset();
      const response = await gateway.post(path, body);
      expect(response.status).toBe(200);
      expect(response.headers.get("x-fallback-model")).toBe("middle");
      expect(second.lastRequest.path).toBe(path);
      expect(second.lastRequest.json()).toEqual({ ...body, model: "middle" });
    }
  });
});

interface Trio {
  a: FakeBackend;
  b: FakeBackend;
  c: FakeBackend;
}

async function trio(policy: object, more: Partial<ConfigDocument> = {}): Promise<Trio & { gateway: Gateway }> {
  const backends = { a: bed.backend(), b: bed.backend({ answer: chat("b") }), c: bed.backend({ answer: chat("c") }) };
  const gateway = await startGateway({
    config: {
      retry: { max_attempts: 1 },
      health_checks: { enabled: false },
      fallback: { fallback_chains: { a: ["b", "c"] }, fallback_policy: policy },
      backends: Object.entries(backends).map(([name, { url }]) => ({ name, url, models: [name] })),
      ...more,
    },
  });
  return { ...backends, gateway };
}

test("max_fallback_attempts cuts the chain", async () => {
  const { a, b, c, gateway } = await trio({ max_fallback_attempts: 1 });
  await using _ = gateway;
  a.reset(failure(503));
  b.reset(failure(503));
  const error = await expectError(await gateway.chat({ model: "a" }), 503);
  expect(error.details).toMatchObject({ attempted_fallbacks: ["b"] });
  expect(c.requests).toHaveLength(0);
});

test("conditions that are switched off do not lead to the next model", async () => {
  const { a, b, gateway } = await trio(
    {
      trigger_conditions: { error_codes: [503], timeout: false, connection_error: false, circuit_breaker_open: false },
    },
    { timeouts: { first_byte: "200ms" }, circuit_breaker: { backends: { a: { failure_threshold: 6 } } } },
  );
  await using _ = gateway;
  for (const [answer, status] of [
    [failure(429), 429],
    [failure(500), [500, 502]],
    [{ hang: true }, 504],
    [{ breakWith: "reset" }, 502],
  ] as [Answer, number | number[]][]) {
    a.reset(answer);
    await expectError(await gateway.chat({ model: "a" }), status);
  }
  expect(b.requests).toHaveLength(0);
  a.reset(failure(503));
  expect((await gateway.chat({ model: "a" })).status).toBe(200);
  expect(b.requests).toHaveLength(1);
});

test("an open circuit is a reason of its own", async () => {
  const { a, gateway } = await trio({}, { circuit_breaker: { failure_threshold: 1 } });
  await using _ = gateway;
  a.reset(failure(500));
  await (await gateway.chat({ model: "a" })).text();
  expect((await gateway.backend("a")).circuit).toBe("open");
  const response = await gateway.chat({ model: "a" });
  expect(response.status).toBe(200);
  expect(response.headers.get("x-fallback-reason")).toBe("circuit_breaker_open");
  expect(a.requests).toHaveLength(1);
});

test("a backend at its rate limit falls back like one that answers 429", async () => {
  const wide = { requests_per_second: 1_000 };
  const limits = { per_client: wide, per_api_key: wide, per_backend: { requests_per_second: 1, burst_capacity: 1 } };
  const { a, b, gateway } = await trio({}, { rate_limiting: { enabled: true, limits } });
  await using _ = gateway;
  const answers = await Promise.all([gateway.chat({ model: "a" }), gateway.chat({ model: "a" })]);
  expect(answers.map((response) => response.status)).toEqual([200, 200]);
  const reasons = answers.map((response) => response.headers.get("x-fallback-reason"));
  expect(reasons.filter((reason) => reason === "error_code_429")).toHaveLength(1);
  expect([a.requests.length, b.requests.length]).toEqual([1, 1]);
});

test("retries come first, then the chain; the stand-in has more time", async () => {
  const { a, b, gateway } = await trio(
    { fallback_timeout_multiplier: 10 },
    { retry: { max_attempts: 3, base_delay: "1ms" }, timeouts: { first_byte: "200ms" } },
  );
  await using _ = gateway;
  a.reset(failure(503));
  b.reset({ ...chat("slow"), beforeHeadersMs: 600 });
  const response = await gateway.chat({ model: "a" });
  expect(await response.text()).toBe(chat("slow").body as string);
  expect(response.headers.get("x-fallback-model")).toBe("b");
  expect(a.requests).toHaveLength(3);
  expect(b.requests).toHaveLength(1);
});

test("fallback.enabled: false leaves the chains alone", async () => {
  const backend = bed.backend({ answer: failure(503) });
  const other = bed.backend();
  await using gateway = await startGateway({
    config: {
      retry: { max_attempts: 1 },
      fallback: { enabled: false, fallback_chains: { a: ["b"] } },
      backends: [
        { name: "a", url: backend.url, models: ["a"] },
        { name: "b", url: other.url, models: ["b"] },
      ],
    },
  });
  await expectError(await gateway.chat({ model: "a" }), 503);
  expect(other.requests).toHaveLength(0);
});

describe("a bad configuration is refused with a clear message", () => {
  const backends = [
    { name: "one", url: "http://127.0.0.1:1", models: ["a", "b"] },
    { name: "two", url: "http://127.0.0.1:2", models: ["c"] },
  ];
  const bad: Record<string, [config: object, path: string, message: RegExp]> = {
    "a chain in a circle": [
      { fallback: { fallback_chains: { a: ["b"], b: ["c"], c: ["a"] } } },
      "fallback.fallback_chains.a",
      /circle: a -> b -> c -> a/,
    ],
    "a chain that names its own model": [
      { fallback: { fallback_chains: { a: ["b", "a"] } } },
      "fallback.fallback_chains.a[1]",
      /circle/,
    ],
    "a model twice in one chain": [
      { fallback: { fallback_chains: { a: ["b", "b"] } } },
      "fallback.fallback_chains.a[1]",
      /twice/,
    ],
    "an empty chain": [
      { fallback: { fallback_chains: { a: [] } } },
      "fallback.fallback_chains.a",
      /at least one model/,
    ],
    "a client error as a trigger": [
      { fallback: { fallback_policy: { trigger_conditions: { error_codes: [400] } } } },
      "error_codes[0]",
      /client's own error/,
    ],
    "no attempts": [{ fallback: { fallback_policy: { max_fallback_attempts: 0 } } }, "max_fallback_attempts", /1/],
    "a failure threshold of zero": [
      { circuit_breaker: { failure_threshold: 0 } },
      "circuit_breaker.failure_threshold",
      /at least 1/,
    ],
    "a success threshold of zero": [
      { circuit_breaker: { success_threshold: 0 } },
      "circuit_breaker.success_threshold",
      /at least 1/,
    ],
    "no trial requests": [
      { circuit_breaker: { half_open_max_requests: 0 } },
      "circuit_breaker.half_open_max_requests",
      /at least 1/,
    ],
    "a failure rate of zero": [
      { circuit_breaker: { failure_rate_threshold: 0 } },
      "circuit_breaker.failure_rate_threshold",
      /above 0/,
    ],
    "a circuit timeout of zero": [
      { circuit_breaker: { timeout: "0s" } },
      "circuit_breaker.timeout",
      /longer than zero/,
    ],
    "a limit below one": [
      { rate_limiting: { limits: { per_client: { requests_per_second: 0.5 } } } },
      "rate_limiting.limits.per_client.requests_per_second",
      /1 or more|at least 1/,
    ],
    "a burst of zero": [
      { rate_limiting: { limits: { global: { burst_capacity: 0 } } } },
      "rate_limiting.limits.global.burst_capacity",
      /at least 1/,
    ],
    "a key's limit of zero": [
      { api_keys: { keys: [{ key: "sk-sekret-zero", rate_limit: 0 }] } },
      "api_keys.keys[0].rate_limit",
      /at least 1/,
    ],
  };
  for (const [name, [config, path, message]] of Object.entries(bad)) {
    test(name, async () => {
      const run = await runCommand({ config: { backends, ...config } as ConfigDocument });
      expect(run.exitCode).toBe(1);
      expect(run.stderr).toContain(path);
      expect(run.stderr).toMatch(message);
      expect(run.stderr).not.toMatch(/^\s+at |ZodError|TypeError|node_modules/m);
    });
  }

  test("a chain may name any model while a backend is asked for its models", async () => {
    const backend = bed.backend({ models: ["late"] });
    await using gateway = await startGateway({
      config: {
        fallback: { fallback_chains: { early: ["late"] } },
        backends: [{ name: "asked", url: backend.url }],
      },
    });
    const response = await gateway.chat({ model: "early" });
    expect(response.status).toBe(200);
    expect(response.headers.get("x-fallback-model")).toBe("late");
  });
});

describe("a chain with a model that nobody serves now", () => {
  const unserved = (path: string, model: string, hint = "") =>
    `fallback.fallback_chains.${path}: no backend serves a model "${model}" now${hint}`;

  interface Changed {
    success: boolean;
    warnings: string[];
  }

  async function change(on: Gateway, method: string, path: string, body?: object): Promise<Changed> {
    const init = {
      method,
      headers: { "Content-Type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    };
    const response = await on.fetch(path, init);
    const answer = (await response.json()) as Changed;
    expect([path, answer.success]).toEqual([path, true]);
    return answer;
  }

  test("is warned of at start, on changes and when a backend is deleted, and is served all the same", async () => {
    const one = bed.backend({ answer: failure(503) });
    const two = bed.backend({ answer: chat("two") });
    await using pool = await startGateway({
      config: {
        retry: { max_attempts: 1 },
        fallback: { fallback_chains: { large: ["smal", "small"] } },
        backends: [
          { name: "one", url: one.url, models: ["large"] },
          { name: "two", url: two.url, models: ["small"] },
        ],
      },
    });
    const warned = (text: string) => () =>
      pool.printed.logEntries.some(({ level, msg }) => level === "warn" && msg === text);
    const mistyped = unserved("large[0]", "smal", '; did you mean "small"?');
    await waitFor("the start is warned of", warned(mistyped));
    expect((await (await pool.chat({ model: "large" })).json()) as object).toMatchObject({
      choices: [{ message: { content: "two" } }],
    });

    const patched = { fallback_chains: { large: ["small"], other: ["large"] } };
    expect((await change(pool, "PATCH", "/admin/config/fallback", patched)).warnings).toEqual([
      unserved("other", "other"),
    ]);
    const other = { fallback_chains: { other: null } };
    expect((await change(pool, "PATCH", "/admin/config/fallback", other)).warnings).toEqual([]);
    expect((await change(pool, "PATCH", "/admin/config/retry", { max_attempts: 2 })).warnings).toEqual([]);

    const gone = unserved("large[0]", "small");
    expect((await change(pool, "DELETE", "/admin/backends/two")).warnings).toEqual([gone]);
    await waitFor("the deletion is warned of", warned(gone));
  });

  test("is no matter while a backend has not said what it serves", async () => {
    const silent = bed.backend();
    silent.stop();
    const named = bed.backend();
    await using pool = await startGateway({
      config: {
        fallback: { fallback_chains: { m: ["other"] } },
        backends: [
          { name: "silent", url: silent.url },
          { name: "named", url: named.url, models: ["m"] },
        ],
      },
    });
    const weight = await change(pool, "PUT", "/admin/backends/named/weight", { weight: 2 });
    expect(weight.warnings).toEqual([]);
    expect((await change(pool, "DELETE", "/admin/backends/silent")).warnings).toEqual([unserved("m[0]", "other")]);
  });
});
