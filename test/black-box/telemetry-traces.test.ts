// Requests and their attempts as spans, at a receiver that reads them by the official definitions of OTLP.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatStream, failure } from "../support/openai-answers.ts";
import { OtlpReceiver, type ReceivedSpan } from "../support/otlp-receiver.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
const other = bed.backend();
let receiver: OtlpReceiver;
let gateway: Gateway;

const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT_ID = "00f067aa0ba902b7";

const backends: ConfigDocument["backends"] = [
  { name: "a", url: backend.url, models: ["m", "first"] },
  { name: "b", url: other.url, type: "vllm", models: ["second"] },
];

function configured(otlp: NonNullable<ConfigDocument["telemetry"]>["otlp"] = {}, more: ConfigDocument = {}) {
  return {
    backends,
    fallback: { enabled: true, fallback_chains: { first: ["second"] } },
    retry: { max_attempts: 2, base_delay: "10ms", jitter: false },
    telemetry: { otlp: { endpoint: receiver.url, ...otlp } },
    ...more,
  } satisfies ConfigDocument;
}

beforeAll(async () => {
  receiver = await OtlpReceiver.start();
  gateway = await bed.gateway({ config: configured() });
}, 300_000);

afterAll(() => receiver.stop());

beforeEach(() => {
  receiver.reset();
  for (const each of [backend, other]) each.reset();
});

async function ask(more: object = {}, headers: Record<string, string> = {}, at = gateway): Promise<Response> {
  const response = await at.chat(more as Record<string, unknown>, { headers });
  await response.text().catch(() => undefined);
  return response;
}

const port = (url: string) => Number(new URL(url).port);

describe("a request", () => {
  test("is a span, and its attempt is a child of it", async () => {
    const response = await ask();
    const [request, attempt] = (await receiver.trace(2)) as [ReceivedSpan, ReceivedSpan];
    expect(request).toMatchObject({ name: "chat m", kind: "server", isError: false, flags: 1, events: [] });
    expect(request.parentSpanId || undefined).toBeUndefined();
    expect(request.traceId).toBe((response.headers.get("x-trace-id") as string).replaceAll("-", ""));
    expect(request.attributes).toEqual({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "generic",
      "gen_ai.request.model": "m",
      "gen_ai.response.model": "m",
      "gen_ai.usage.input_tokens": expect.any(Number),
      "gen_ai.usage.output_tokens": expect.any(Number),
      "http.request.method": "POST",
      "http.response.status_code": 200,
      "url.path": "/v1/chat/completions",
      "signalbox.backend": "a",
      "signalbox.attempts": 1,
      "signalbox.request.id": response.headers.get("x-signalbox-request-id") as string,
    });
    expect(attempt).toMatchObject({
      name: "chat m",
      kind: "client",
      isError: false,
      flags: 1,
      traceId: request.traceId,
    });
    expect(attempt.parentSpanId).toBe(request.spanId);
    expect(attempt.attributes).toEqual({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "generic",
      "gen_ai.request.model": "m",
      "gen_ai.usage.input_tokens": expect.any(Number),
      "gen_ai.usage.output_tokens": expect.any(Number),
      "http.response.status_code": 200,
      "server.address": "127.0.0.1",
      "server.port": port(backend.url),
      "signalbox.backend": "a",
    });
    expect(request.startNs <= attempt.startNs && attempt.endNs <= request.endNs).toBe(true);
    expect(Math.abs(Number(request.endNs / 1_000_000n) - Date.now())).toBeLessThan(30_000);
    // What the backend was told is its parent.
    expect(backend.lastRequest.headers.traceparent).toBe(`00-${request.traceId}-${attempt.spanId}-01`);
    expect(receiver.requests[0]?.resource).toMatchObject({ "service.name": "signalbox", "service.version": "0.1.0" });
  });

  test("is a child of the span that its client names, and the trace goes on to the backend", async () => {
    await ask({}, { traceparent: `00-${TRACE_ID}-${PARENT_ID}-01`, tracestate: "vendor=value" });
    const [request, attempt] = (await receiver.trace(2)) as [ReceivedSpan, ReceivedSpan];
    expect(request).toMatchObject({ traceId: TRACE_ID, parentSpanId: PARENT_ID, traceState: "vendor=value" });
    expect(attempt).toMatchObject({ traceId: TRACE_ID, parentSpanId: request.spanId, traceState: "vendor=value" });
    expect(backend.lastRequest.headers.traceparent).toBe(`00-${TRACE_ID}-${attempt.spanId}-01`);
    expect(backend.lastRequest.headers.tracestate).toBe("vendor=value");
  });

  test("whose client does not want it recorded is not, and nothing of its trace changes", async () => {
    const traceparent = `00-${TRACE_ID}-${PARENT_ID}-00`;
    await ask({}, { traceparent });
    expect(backend.lastRequest.headers.traceparent).toBe(traceparent);
    await ask({ user: "the next one" });
    const [request] = await receiver.trace(2);
    expect(request?.traceId).not.toBe(TRACE_ID);
  });

  test("with an id that is no trace id has a trace all the same", async () => {
    await ask({}, { "X-Request-ID": "mine-1" });
    const [request] = await receiver.trace(2);
    expect(request?.traceId).toMatch(/^[0-9a-f]{32}$/);
    expect(backend.lastRequest.headers.traceparent).toContain(request?.traceId as string);
    expect(backend.lastRequest.headers["x-request-id"]).toBe("mine-1");
  });

  test("that is retried has a span for each attempt, and says why it waited", async () => {
    backend.queue(failure(503), chat("ok"));
    await ask();
    const [request, failed, answered] = (await receiver.trace(3)) as [ReceivedSpan, ReceivedSpan, ReceivedSpan];
    expect(request).toMatchObject({ isError: false, attributes: { "signalbox.attempts": 2 } });
    expect(request.events).toMatchObject([{ name: "signalbox.wait", attributes: { "signalbox.reason": "retry" } }]);
    expect(failed).toMatchObject({
      isError: true,
      parentSpanId: request.spanId,
      attributes: { "error.type": "status_503", "http.response.status_code": 503 },
    });
    expect(answered).toMatchObject({
      isError: false,
      parentSpanId: request.spanId,
      attributes: { "http.request.resend_count": 1, "http.response.status_code": 200 },
    });
    expect(failed.attributes["gen_ai.usage.input_tokens"]).toBeUndefined();
    expect(backend.requests.map(({ headers }) => headers.traceparent?.slice(36, 52))).toEqual([
      failed.spanId,
      answered.spanId,
    ]);
  });

  test("that another model answers says so", async () => {
    backend.answer = failure(503);
    await ask({ model: "first" });
    const spans = await receiver.trace(4);
    expect(spans.map(({ name, attributes }) => [name, attributes["signalbox.backend"]])).toEqual([
      ["chat first", "b"],
      ["chat first", "a"],
      ["chat first", "a"],
      ["chat second", "b"],
    ]);
    expect(spans[0]).toMatchObject({
      isError: false,
      attributes: {
        "gen_ai.request.model": "first",
        "gen_ai.response.model": "second",
        "gen_ai.provider.name": "vllm",
        "signalbox.fallback.reason": "error_code_503",
      },
    });
    expect(spans[0]?.events.at(-1)).toMatchObject({
      name: "signalbox.fallback",
      attributes: { "signalbox.from": "first", "signalbox.to": "second" },
    });
  });

  test("that streams tells when its first words came", async () => {
    other.answer = { ...chatStream(["a", "b"]), betweenChunksMs: 20 };
    await ask({ model: "second", stream: true });
    const spans = await receiver.trace(2);
    for (const { attributes, startNs, endNs } of spans) {
      expect(attributes["gen_ai.request.stream"]).toBe(true);
      const firstMs = Number(attributes["gen_ai.response.time_to_first_chunk"]) * 1000;
      expect(firstMs).toBeGreaterThan(0);
      expect(firstMs).toBeLessThan(Number((endNs - startNs) / 1_000_000n) + 1);
    }
  });

  test("whose stream breaks off is an error, though 200 was sent", async () => {
    other.answer = { ...chatStream(["a", "b", "c"]), breakAfterBytes: 300, breakWith: "reset" };
    await ask({ model: "second", stream: true });
    const spans = await receiver.trace(2);
    for (const { isError, attributes } of spans) {
      expect(isError).toBe(true);
      expect(attributes["error.type"]).toBe("reset");
    }
  });

  test("whose client leaves is nobody's error", async () => {
    other.answer = { hang: true };
    const abort = new AbortController();
    const asked = gateway.chat({ model: "second" }, { signal: abort.signal }).catch(() => undefined);
    await waitFor("the backend is asked", () => other.requests.length === 1);
    abort.abort();
    await asked;
    const spans = await receiver.trace(2);
    expect(spans.map(({ isError, attributes }) => [isError, attributes["error.type"]])).toEqual([
      [false, "aborted"],
      [false, "aborted"],
    ]);
    expect(spans[0]?.attributes["http.response.status_code"]).toBe(499);
  });

  test("that is refused has no attempt", async () => {
    expect((await ask({ model: "nobody" })).status).toBe(404);
    const [request] = (await receiver.trace(1)) as [ReceivedSpan];
    expect(request).toMatchObject({
      name: "chat nobody",
      isError: false,
      attributes: { "http.response.status_code": 404, "error.type": "model_not_found", "signalbox.attempts": 0 },
    });
    expect(request.attributes["gen_ai.response.model"]).toBeUndefined();
  });

  test("that is refused before its model is known is a span, and one that only looks for a path is none", async () => {
    const api_keys = { mode: "blocking" as const, keys: [{ key: "sekret-of-the-client", models: ["m"] }] };
    const refused = await bed.gateway({ config: configured({}, { api_keys }) });
    const key = { Authorization: "Bearer sekret-of-the-client" };
    const traceparent = `00-${TRACE_ID}-${PARENT_ID}-01`;
    const answers = [
      await refused.chat({}, { headers: { traceparent } }),
      await refused.chat({ messages: "none" }, { headers: { ...key, traceparent } }),
      await refused.chat({ model: "second" }, { headers: { ...key, traceparent } }),
      await refused.chat({}, { headers: { ...key, traceparent: `00-${TRACE_ID}-${PARENT_ID}-00` } }),
      await refused.fetch("/v1/chat/nothing", { headers: { ...key, traceparent } }),
      await refused.fetch("/v1/models", { headers: { traceparent } }),
    ];
    for (const answer of answers) await answer.text();
    expect(answers.map(({ status }) => status)).toEqual([401, 400, 403, 200, 404, 401]);
    await refused.stop();
    const spans = receiver.spans.sort((one, other) => Number(one.startNs - other.startNs));
    expect(spans.map(({ name, kind, attributes }) => [name, kind, attributes["http.response.status_code"]])).toEqual([
      ["chat", "server", 401],
      ["chat m", "server", 400],
      ["chat second", "server", 403],
    ]);
    for (const { attributes, isError, events, traceId, parentSpanId } of spans) {
      expect([isError, events, traceId, parentSpanId]).toEqual([false, [], TRACE_ID, PARENT_ID]);
      expect(attributes).toMatchObject({
        "gen_ai.operation.name": "chat",
        "http.request.method": "POST",
        "url.path": "/v1/chat/completions",
        "error.type": expect.any(String),
        "signalbox.request.id": expect.any(String),
        "signalbox.attempts": 0,
      });
    }
    expect(Object.keys(spans[0]?.attributes ?? {})).not.toContain("gen_ai.request.model");
  });

  test("in another format tells why the model stopped", async () => {
    other.answer = chat("ok");
    const response = await gateway.post("/v1/messages", {
      model: "second",
      max_tokens: 5,
      messages: [{ role: "user", content: "a prompt that nobody reads here" }],
    });
    expect(response.status).toBe(200);
    await response.text();
    const spans = await receiver.trace(2);
    for (const { attributes, name } of spans) {
      expect(name).toBe("chat second");
      expect(attributes["gen_ai.response.finish_reasons"]).toEqual(["stop"]);
    }
    expect(JSON.stringify(spans, (_key, value) => (typeof value === "bigint" ? String(value) : value))).not.toContain(
      "prompt that",
    );
  });

  test("that only looks is no span", async () => {
    for (const path of ["/health", "/v1/models", "/admin/health", "/nowhere"]) await gateway.fetch(path);
    await ask();
    await receiver.trace(2);
  });
});

describe("sampling", () => {
  async function recorded(otlp: object, count: number, headers: Record<string, string> = {}): Promise<ReceivedSpan[]> {
    const sampling = await bed.gateway({ config: configured(otlp) });
    for (let each = 0; each < count; each++) await ask({ user: String(each) }, headers, sampling);
    await sampling.stop();
    return receiver.spans;
  }

  test("none of the traces that begin here, and backends are told", async () => {
    expect(await recorded({ sampling_ratio: 0 }, 5)).toEqual([]);
    for (const { headers } of backend.requests)
      expect(headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  });

  test("a client's decision holds whatever the ratio is", async () => {
    const spans = await recorded({ sampling_ratio: 0 }, 3, { traceparent: `00-${TRACE_ID}-${PARENT_ID}-01` });
    expect(spans).toHaveLength(6);
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE_ID]));
  });

  test("half of them, each whole, and backends are told of each", async () => {
    const spans = await recorded({ sampling_ratio: 0.5 }, 200);
    const requests = spans.filter(({ kind }) => kind === "server");
    // Outside of these bounds once in a billion runs.
    expect(requests.length).toBeGreaterThan(55);
    expect(requests.length).toBeLessThan(145);
    expect(spans).toHaveLength(requests.length * 2);
    const told = backend.requests.filter(({ headers }) => headers.traceparent?.endsWith("-01"));
    expect(new Set(told.map(({ headers }) => headers.traceparent?.slice(3, 35)))).toEqual(
      new Set(requests.map(({ traceId }) => traceId)),
    );
  });
});

test("while tracing is off nothing is read from clients and nothing told to backends, but spans are sent", async () => {
  const silent = await bed.gateway({ config: configured({}, { tracing: { enabled: false } }) });
  await ask({}, { traceparent: `00-${TRACE_ID}-${PARENT_ID}-01` }, silent);
  expect(backend.lastRequest.headers.traceparent).toBeUndefined();
  await silent.stop();
  expect(receiver.spans).toHaveLength(2);
  expect(receiver.spans[0]?.traceId).not.toBe(TRACE_ID);
});

test("calls that are shared and answers from the cache say so", async () => {
  const sharing = await bed.gateway({ config: configured({}, { response_cache: { enabled: true } }) });
  const gate = Promise.withResolvers<void>();
  backend.answer = { ...chat("ok"), headersAfter: gate.promise };
  const both = [0, 1].map(() => ask({ temperature: 0 }, {}, sharing));
  await waitFor("one of them is asked", () => backend.requests.length === 1);
  await Bun.sleep(50); // for the second one, which nothing tells of
  gate.resolve();
  await Promise.all(both);
  await ask({ temperature: 0 }, {}, sharing);
  await sharing.stop();
  expect(backend.requests).toHaveLength(1);
  const requests = receiver.spans.filter(({ kind }) => kind === "server");
  expect(receiver.spans).toHaveLength(4);
  expect(requests.map(({ attributes }) => attributes["signalbox.response_cache"]).sort()).toEqual([
    "hit",
    "miss",
    "miss",
  ]);
  const shared = requests.filter(({ attributes }) => attributes["signalbox.shared"] === true);
  expect(shared).toHaveLength(1);
  const leader = requests.find(({ traceId }) =>
    receiver.spans.some((span) => span.kind === "client" && span.traceId === traceId),
  );
  expect(shared[0]?.events).toMatchObject([
    {
      name: "signalbox.shared",
      attributes: { "signalbox.leader": leader?.attributes["signalbox.request.id"] as string },
    },
  ]);
});
