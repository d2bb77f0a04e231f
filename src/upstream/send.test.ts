// One attempt at a real backend on a socket: every way it can answer, fail, hang or be left, and what is counted.

import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { type Answer, FakeBackend } from "../../test/support/fake-backend.ts";
import {
  chat,
  chatBody,
  chatEvents,
  chatStream,
  eventStream,
  failure,
  html,
} from "../../test/support/openai-answers.ts";
import { type SilentHost, startSilentHost } from "../../test/support/silent-host.ts";
import { waitFor, within } from "../../test/support/wait-for.ts";
import { newCounters, toBackend } from "../backends/backend.ts";
import type { BackendEntry } from "../backends/board.ts";
import type { Operation } from "../backends/operations.ts";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { createDeadlines } from "../lib/deadlines.ts";
import type { Translation } from "../protocols/translate.ts";
import type { ExchangeTimeouts } from "./exchange.ts";
import { toldFailure, type UpstreamFailure } from "./failure.ts";
import { countFailure, createSender, type OutgoingRequest, type SendOutcome } from "./send.ts";
import { createTransport } from "./transport.ts";

type BackendInput = NonNullable<ConfigDocument["backends"]>[number];

const LONG_MS = 60_000;
const KIBIBYTE = 1024;
const MEBIBYTE = 1024 * KIBIBYTE;

const now = () => performance.now();
const deadlines = createDeadlines(now);
const sender = createSender(
  createTransport(async () => new Response("{}")),
  { deadlines, now },
);

let backend: FakeBackend;
beforeAll(() => {
  backend = new FakeBackend();
});
afterAll(() => backend.stop());
afterEach(() => {
  backend.reset();
  expect(deadlines.size).toBe(0);
});

function entryAt(url: string, more: Partial<BackendInput> = {}): BackendEntry {
  const settings = documentSchema.parse({ backends: [{ name: "b1", url, ...more }] });
  return { backend: toBackend(settings.backends[0]!), health: "ready", available: true, counters: newCounters() };
}

interface Attempt {
  stream?: boolean;
  timeouts?: Partial<ExchangeTimeouts> & { requestMs?: number };
  signal?: AbortSignal;
  headers?: Record<string, string>;
  more?: Partial<OutgoingRequest>;
}

function attempt(entry: BackendEntry, options: Attempt = {}): Promise<SendOutcome> {
  const { requestMs = LONG_MS, ...timeouts } = options.timeouts ?? {};
  const request: OutgoingRequest = {
    operation: "chat",
    model: "m",
    stream: options.stream ?? false,
    choices: 1,
    body: new TextEncoder().encode('{ "model": "m",  "ü": 1 }'),
    clientHeaders: new Headers(options.headers),
    trace: { id: "trace-1", traceparent: undefined, tracestate: undefined },
    client: { signal: options.signal ?? new AbortController().signal },
    timeouts: {
      connectMs: LONG_MS,
      firstByteMs: LONG_MS,
      betweenChunksMs: LONG_MS,
      requestDeadlineMs: now() + requestMs,
      ...timeouts,
    },
    ...options.more,
  };
  return within("the attempt has an outcome", sender.send(entry, request, documentSchema.parse({})), 15_000);
}

/** The failure of an attempt at the scripted backend, and the backend's entry afterwards. */
async function failing(
  answer: Answer,
  options: Attempt = {},
): Promise<{ failure: UpstreamFailure; entry: BackendEntry }> {
  backend.answer = answer;
  const entry = entryAt(backend.url);
  const outcome = await attempt(entry, options);
  if (outcome.ok) throw new Error("the attempt succeeded");
  expect(entry.counters.inFlight).toBe(0);
  expect(entry.counters.totalRequests).toBe(1);
  return { failure: outcome.failure, entry };
}

function textOf(failure: UpstreamFailure): string {
  return "message" in failure ? failure.message : "";
}

describe("a plain answer", () => {
  test("comes back byte for byte, with its type and the headers of its kind", async () => {
    const text = ' {"id" : "x",\n "text":"Grüße 🚂", "future":[1] }\n';
    backend.answer = {
      body: text,
      headers: { "Content-Type": "application/json; charset=utf-8", "openai-version": "v", "Set-Cookie": "a=b" },
    };
    const entry = entryAt(backend.url, { type: "openai" });
    const outcome = await attempt(entry);
    if (!outcome.ok || outcome.kind !== "plain") throw new Error("no plain answer");
    expect(new TextDecoder().decode(outcome.body)).toBe(text);
    expect(outcome.contentType).toBe("application/json; charset=utf-8");
    expect(outcome.headers).toEqual({ "openai-version": "v" });
    expect(entry.counters).toMatchObject({ inFlight: 0, totalRequests: 1, failedRequests: 0 });
    expect(entry.counters.latencyMs).toBeGreaterThan(0);
  });

  test("of unknown length and in many pieces comes back whole", async () => {
    const text = chatBody("x".repeat(50 * KIBIBYTE));
    backend.answer = { body: text, framing: "chunked", chunkBytes: 1_000 };
    const outcome = await attempt(entryAt(backend.url));
    if (!outcome.ok || outcome.kind !== "plain") throw new Error("no plain answer");
    expect(Buffer.from(outcome.body).equals(Buffer.from(text))).toBe(true);
  });

  test("larger than what is proven to be JSON comes back whole too", async () => {
    const text = chatBody("x".repeat(2 * MEBIBYTE));
    for (const framing of ["length", "chunked"] as const) {
      backend.answer = { body: text, framing };
      const outcome = await attempt(entryAt(backend.url));
      if (!outcome.ok || outcome.kind !== "plain") throw new Error("no plain answer");
      expect(Buffer.from(outcome.body).equals(Buffer.from(text))).toBe(true);
    }
  });

  test.each([100 * KIBIBYTE, 2 * MEBIBYTE])("of %i bytes is counted though nobody parses it", async (bytes) => {
    const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };
    backend.answer = { body: chatBody("x".repeat(bytes), { usage }) };
    const outcome = await attempt(entryAt(backend.url));
    if (!outcome.ok || outcome.kind !== "plain") throw new Error("no plain answer");
    expect(outcome.usage).toMatchObject({ input: { total: 7 }, output: { total: 5 } });
  });

  test("an error is found in a large answer, too", async () => {
    const error = { message: "x".repeat(100 * KIBIBYTE), code: 503 };
    const { failure } = await failing({ body: JSON.stringify({ error }) });
    expect(failure).toMatchObject({ kind: "status", status: 503 });
  });

  const large = `{"text":"${"x".repeat(MEBIBYTE)}"}`;
  const answers: [what: string, text: string, operation: Operation, parsed: object | undefined][] = [
    ["an object as parsed", '{"a":[1]}', "rerank", { a: [1] }],
    ["an array as bytes only", "[1]", "rerank", undefined],
    ["what is too large to be looked into as bytes only", large, "chat", undefined],
  ];
  test.each(answers)("a translation is given %s", async (_, text, operation, expected) => {
    backend.answer = { body: text };
    const given: [text: string, parsed: object | undefined][] = [];
    const translation: Translation = {
      plain(body, parsed) {
        given.push([new TextDecoder().decode(body), parsed]);
        return { body: new Uint8Array([1]), usage: undefined };
      },
      stream: () => {
        throw new Error("no stream was asked for");
      },
      error: (status) => ({ status, message: "no error was told" }),
    };
    const outcome = await attempt(entryAt(backend.url), {
      more: { operation, answers: operation === "rerank" ? "list" : undefined, translation, path: "/v1/any" },
    });
    expect(outcome).toMatchObject({ ok: true, kind: "plain", body: new Uint8Array([1]) });
    expect(given).toEqual([[text, expected]]);
  });
});

describe("what the backend gets", () => {
  test("the client's bytes, and none of its credentials", async () => {
    const secrets = { authorization: "Bearer client-secret", "x-api-key": "client-secret", cookie: "c=client-secret" };
    await attempt(entryAt(backend.url), { headers: { ...secrets, "user-agent": "the client" } });
    const { method, path, text, headers } = backend.lastRequest;
    expect({ method, path, text }).toEqual({
      method: "POST",
      path: "/v1/chat/completions",
      text: '{ "model": "m",  "ü": 1 }',
    });
    expect(JSON.stringify(headers)).not.toContain("client-secret");
    expect(headers["user-agent"]).toBe("the client");
    expect(headers["x-request-id"]).toBe("trace-1");
    expect(headers["content-type"]).toBe("application/json");
  });

  test("its own key instead of the client's", async () => {
    const secrets = { authorization: "Bearer client-secret" };
    await attempt(entryAt(backend.url, { api_key: "own-key" }), { headers: secrets });
    expect(backend.lastRequest.headers.authorization).toBe("Bearer own-key");
  });

  test("the path of the operation, below whatever path the address has", async () => {
    await attempt(entryAt(`${backend.url}/v1/`), { more: { operation: "embeddings" } });
    expect(backend.lastRequest.path).toBe("/v1/embeddings");
    await attempt(entryAt(backend.url, { type: "azure", deployments: { m: "my deployment" } }));
    expect(backend.lastRequest.path).toStartWith("/openai/deployments/my%20deployment/chat/completions?api-version=");
  });
});

describe("an answer that is no success", () => {
  test("keeps its status, body, Retry-After and the headers of its kind", async () => {
    backend.answer = {
      ...failure(429),
      headers: { "Retry-After": "7", "x-ratelimit-reset-requests": "7s", Server: "x" },
    };
    const entry = entryAt(backend.url, { type: "openai" });
    const outcome = await attempt(entry);
    if (outcome.ok || outcome.failure.kind !== "status") throw new Error("no status failure");
    expect(outcome.failure).toMatchObject({ status: 429, retryAfterMs: 7_000 });
    expect(outcome.failure.headers).toEqual({ "retry-after": "7", "x-ratelimit-reset-requests": "7s" });
    expect(new TextDecoder().decode(outcome.failure.body)).toBe(failure(429).body as string);
    expect(entry.counters).toMatchObject({ failedRequests: 1, latencyMs: undefined, expectedMs: 10_000 });
  });

  test.each([
    [400, 0],
    [401, 1],
    [403, 1],
    [404, 0],
    [422, 0],
    [429, 1],
    [500, 1],
    [503, 1],
  ])("%d counts as %d failures of the backend", async (status, failedRequests) => {
    const { entry } = await failing(failure(status));
    expect(entry.counters.failedRequests).toBe(failedRequests);
  });

  test("a body of an error that is too large is let go, its status stays", async () => {
    const outcome = await failing({ status: 500, body: "x".repeat(2 * MEBIBYTE), framing: "chunked" });
    expect(outcome.failure).toMatchObject({ kind: "status", status: 500 });
    if (outcome.failure.kind === "status") expect(outcome.failure.body.length).toBe(0);
  });

  test("a body of an error that breaks leaves its status", async () => {
    const answer = { ...failure(503), framing: "chunked" as const, breakAfterBytes: 10 };
    expect((await failing(answer)).failure).toMatchObject({ kind: "status", status: 503 });
  });

  test.each([[301], [302], [307]])("a redirect (%d) is not followed", async (status) => {
    const { failure } = await failing({ status, headers: { Location: `${backend.url}/elsewhere` } });
    expect(failure.kind).toBe("invalid-response");
    expect(textOf(failure)).toContain(`redirect (HTTP ${status})`);
    expect(backend.requests.length + backend.probes.length).toBe(1);
  });

  test.each([[201], [204]])("another success (%d) is no answer either", async (status) => {
    const { failure } = await failing({ status, body: status === 204 ? "" : chatBody("x") });
    expect(failure.kind).toBe("invalid-response");
    expect(textOf(failure)).toContain(`HTTP ${status}`);
  });
});

describe("an answer that is none of its protocol", () => {
  const cases: [title: string, answer: Answer, text: string][] = [
    ["HTML", html(), "not valid JSON (HTTP 200, text/html)"],
    ["nothing", { body: "" }, "empty answer"],
    ["nothing of unknown length", { body: "", framing: "chunked" }, "empty answer"],
    ["cut JSON", { body: '{"id":"x"' }, "not valid JSON"],
    ["an array", { body: "[1]" }, "JSON that is no object"],
    ["null", { body: "null" }, "JSON that is no object"],
    ["large HTML", { body: `<html>${"x".repeat(2 * MEBIBYTE)}` }, "not valid JSON"],
    [
      "a large answer that is cut",
      { body: chatBody("x".repeat(2 * MEBIBYTE)).slice(0, -9), framing: "chunked" },
      "not valid JSON",
    ],
  ];
  test.each(cases)("%s", async (_title, answer, text) => {
    const { failure, entry } = await failing(answer);
    expect(failure.kind).toBe("invalid-response");
    expect(textOf(failure)).toContain("'b1'");
    expect(textOf(failure)).toContain(text);
    expect(entry.counters.failedRequests).toBe(1);
  });

  test("more bytes than fit into memory are refused while they come", async () => {
    const piece = "x".repeat(MEBIBYTE);
    const { failure } = await failing({ body: Array<string>(200).fill(piece) });
    expect(failure.kind).toBe("invalid-response");
    expect(textOf(failure)).toContain("more than");
    await within("the connection is given up", backend.lastRequest.closed);
    expect(backend.lastRequest.answerComplete).toBe(false);
  });
});

describe("an error inside a 200 answer", () => {
  const body = (error: unknown) => JSON.stringify({ error, choices: [] });
  for (const stream of [false, true]) {
    test(`is a failure with the status it names (stream: ${stream})`, async () => {
      const overloaded = body({ message: "overloaded", code: 529 });
      const { failure, entry } = await failing({ body: overloaded }, { stream });
      expect(failure).toMatchObject({ kind: "status", status: 503 });
      if (failure.kind === "status") {
        expect(JSON.parse(new TextDecoder().decode(failure.body))).toMatchObject({ error: { message: "overloaded" } });
      }
      expect(entry.counters.failedRequests).toBe(1);
      expect((await failing({ body: body("text") }, { stream })).failure).toMatchObject({
        kind: "status",
        status: 502,
      });
    });
  }

  test("null is no error", async () => {
    backend.answer = { body: body(null) };
    expect((await attempt(entryAt(backend.url))).ok).toBe(true);
  });

  test("as the first event of a stream it can still be retried", async () => {
    const forever = new Promise<void>(() => {});
    const event = 'data: {"error":{"message":"busy","code":503}}\n\n';
    const { failure } = await failing(
      eventStream([": ping\n\n", event, "more"], { beforeChunk: (index) => (index === 2 ? forever : undefined) }),
      { stream: true },
    );
    expect(failure).toMatchObject({ kind: "status", status: 503 });
    await within("the connection is given up", backend.lastRequest.closed);
  });
});

describe("a stream", () => {
  test("is open from its first event on, comments before it included", async () => {
    const gate = Promise.withResolvers<void>();
    const events = [": ping\n\n", ": pong\n\n", ...chatEvents(["a"])];
    backend.answer = eventStream(events, { beforeChunk: (index) => (index === 3 ? gate.promise : undefined) });
    const entry = entryAt(backend.url);
    const outcome = await attempt(entry, { stream: true });
    if (!outcome.ok || outcome.kind !== "stream") throw new Error("no stream");
    expect(new TextDecoder().decode(outcome.stream.firstEvents)).toBe(events.slice(0, 3).join(""));
    expect(entry.counters.inFlight).toBe(1);
    outcome.exchange.abort();
    outcome.exchange.release();
    expect(entry.counters.inFlight).toBe(0);
    gate.resolve();
    await within("the backend notices", backend.lastRequest.closed);
  });

  test("a first event in many pieces is waited for", async () => {
    backend.answer = chatStream(["a"], {}, { chunkBytes: 3 });
    const outcome = await attempt(entryAt(backend.url), { stream: true });
    if (!outcome.ok || outcome.kind !== "stream") throw new Error("no stream");
    expect(new TextDecoder().decode(outcome.stream.firstEvents)).toContain('"role":"assistant"');
    outcome.exchange.abort();
    outcome.exchange.release();
  });

  test("that consists of its end marker alone is one", async () => {
    backend.answer = eventStream(["data: [DONE]\n\n"]);
    const outcome = await attempt(entryAt(backend.url), { stream: true });
    expect(outcome.ok).toBe(true);
    if (outcome.ok && outcome.kind === "stream") outcome.exchange.release();
  });

  const bad: [title: string, answer: Answer, text: string][] = [
    ["HTML", html(), "text/html"],
    ["HTML that calls itself a stream", eventStream(["<html>", "</html>"]), "HTML instead of a stream"],
    ["a whole answer instead", chat("x"), "answered a request for a stream with application/json"],
    ["nothing", eventStream(""), "closed the stream before its first event"],
    ["comments only", eventStream([": ping\n\n", ": ping\n\n"]), "closed the stream before its first event"],
    ["half an event", eventStream(['data: {"a":']), "no stream of events"],
    ["a first event that is not JSON", eventStream(["data: hello\n\n"]), "not JSON"],
    [
      "an endless comment",
      eventStream(Array<string>(40).fill(`: ${"x".repeat(64 * KIBIBYTE)}\n\n`)),
      "nothing but comments",
    ],
    ["an endless first event", eventStream(Array<string>(34).fill("x".repeat(MEBIBYTE))), "too large"],
  ];
  test.each(bad)("%s is no stream", async (_title, answer, text) => {
    const { failure, entry } = await failing(answer, { stream: true });
    expect(failure.kind).toBe("invalid-response");
    expect(textOf(failure)).toContain(text);
    expect(entry.counters.failedRequests).toBe(1);
  });
});

describe("no connection", () => {
  test("nobody listens", async () => {
    const closed = new FakeBackend();
    const { url } = closed;
    closed.stop();
    const entry = entryAt(url);
    const outcome = await attempt(entry);
    expect(outcome).toMatchObject({ ok: false, failure: { kind: "connect" } });
    expect(entry.counters).toMatchObject({ inFlight: 0, totalRequests: 1, failedRequests: 1 });
  });

  test.each([[false], [true]])("broken before the answer or inside it (stream: %p)", async (stream) => {
    expect((await failing({ breakWith: "reset" }, { stream })).failure.kind).toBe("reset");
    const cut: Answer = stream
      ? chatStream(["a"], {}, { breakAfterBytes: 20, breakWith: "reset" })
      : { ...chat("a"), breakAfterBytes: 20, breakWith: "reset" };
    const { failure } = await failing(cut, { stream });
    expect(failure.kind).toBe("reset");
  });

  test("fewer bytes than announced are no answer", async () => {
    const { failure } = await failing({ ...chat("a"), contentLength: 5_000 });
    expect(["reset", "invalid-response"]).toContain(failure.kind);
  });
});

describe("timeouts", () => {
  function phaseOf(failure: UpstreamFailure): string {
    return failure.kind === "timeout" ? failure.phase : failure.kind;
  }

  let silent: SilentHost | undefined;
  beforeAll(async () => {
    silent = await startSilentHost();
  });
  afterAll(() => silent?.[Symbol.asyncDispose]());

  test("connect: a host that takes no connection", async () => {
    if (silent === undefined) return;
    const entry = entryAt(silent.url);
    const outcome = await attempt(entry, { timeouts: { connectMs: 200 } });
    if (outcome.ok) throw new Error("the attempt succeeded");
    expect(phaseOf(outcome.failure)).toBe("connect");
    expect(entry.counters).toMatchObject({ inFlight: 0, failedRequests: 1 });
  });

  test("a slow model is no dead host: only the first byte's limit counts", async () => {
    backend.answer = { ...chat("late"), beforeHeadersMs: 300 };
    const outcome = await attempt(entryAt(backend.url), { timeouts: { connectMs: 50 } });
    expect(outcome.ok).toBe(true);
  });

  for (const stream of [false, true]) {
    test(`first byte: nothing comes, or a head only (stream: ${stream})`, async () => {
      const timeouts = { connectMs: 50, firstByteMs: 150 };
      const hanging = await failing({ hang: true }, { stream, timeouts });
      expect(phaseOf(hanging.failure)).toBe("first_byte");
      await within("the connection is given up", backend.lastRequest.closed);
      const head: Answer = { ...chatStream(["a"]), beforeFirstChunkMs: LONG_MS };
      expect(phaseOf((await failing(head, { stream, timeouts })).failure)).toBe("first_byte");
      await within("the connection is given up", backend.lastRequest.closed);
    });

    test(`request: whatever the other limits are (stream: ${stream})`, async () => {
      const { failure } = await failing({ hang: true }, { stream, timeouts: { requestMs: 100 } });
      expect(phaseOf(failure)).toBe("request");
      await within("the connection is given up", backend.lastRequest.closed);
    });
  }

  test("between chunks: a plain answer that falls silent", async () => {
    const answer: Answer = { body: ["{", "}"], betweenChunksMs: LONG_MS };
    const { failure, entry } = await failing(answer, { timeouts: { betweenChunksMs: 100 } });
    expect(phaseOf(failure)).toBe("between_chunks");
    expect(entry.counters.failedRequests).toBe(1);
  });

  test("between chunks: an error body that falls silent is a timeout, too", async () => {
    const answer: Answer = { status: 500, body: ["{", "}"], betweenChunksMs: LONG_MS };
    const { failure } = await failing(answer, { timeouts: { betweenChunksMs: 100 } });
    expect(phaseOf(failure)).toBe("between_chunks");
  });

  test("between chunks: a stream that falls silent before its first event is whole", async () => {
    const answer = eventStream(["data: {", "}\n\n"], { betweenChunksMs: LONG_MS });
    const { failure } = await failing(answer, { stream: true, timeouts: { betweenChunksMs: 100 } });
    expect(phaseOf(failure)).toBe("between_chunks");
  });

  test("pieces that keep coming keep the exchange alive", async () => {
    const body = Array.from(chatBody("x").slice(0, 20)).concat(chatBody("x").slice(20));
    backend.answer = { body, betweenChunksMs: 60 };
    const outcome = await attempt(entryAt(backend.url), { timeouts: { betweenChunksMs: 1_000, firstByteMs: 1_000 } });
    expect(outcome.ok).toBe(true);
  });
});

describe("the client leaves", () => {
  for (const stream of [false, true]) {
    test(`the backend's connection is closed, and nobody is blamed (stream: ${stream})`, async () => {
      backend.answer = { hang: true };
      const entry = entryAt(backend.url);
      const client = new AbortController();
      const outcome = attempt(entry, { stream, signal: client.signal });
      await waitFor("the backend has the request", () => backend.requests.length === 1);
      expect(entry.counters.inFlight).toBe(1);
      client.abort();
      expect(await outcome).toEqual({ ok: false, failure: { kind: "aborted" } });
      expect(entry.counters).toMatchObject({ inFlight: 0, totalRequests: 1, failedRequests: 0 });
      await within("the connection is given up", backend.lastRequest.closed);
    });
  }

  test("who had left before does not keep the backend", async () => {
    backend.answer = { ...backend.answer, beforeHeadersMs: LONG_MS };
    const outcome = await attempt(entryAt(backend.url), { signal: AbortSignal.abort() });
    expect(outcome).toEqual({ ok: false, failure: { kind: "aborted" } });
  });
});

describe("the average time to the first byte", () => {
  test.each([
    [400, 1_000],
    [413, 1_000],
    [422, 1_000],
    [404, 10_000],
    [500, 10_000],
  ])("after HTTP %d nothing was measured, and strategies expect %p", async (status, expectedMs) => {
    const { entry } = await failing(failure(status));
    expect(entry.counters).toMatchObject({ latencyMs: undefined, expectedMs });
  });

  test("starts at the first measurement and moves a fifth of the way with each further one", async () => {
    const entry = entryAt(backend.url);
    await attempt(entry);
    entry.counters.latencyMs = 100_000;
    await attempt(entry);
    expect(entry.counters.latencyMs).toBeGreaterThan(80_000);
    expect(entry.counters.latencyMs).toBeLessThan(82_000);
  });
});

describe("whose failure it is", () => {
  const cases: [failure: UpstreamFailure, count: number][] = [
    [{ kind: "aborted" }, 0],
    [{ kind: "told-in-stream" }, 1],
    [{ kind: "told-in-stream", told: toldFailure({ message: "", status: 502 }) }, 1],
    [{ kind: "told-in-stream", told: toldFailure({ message: "", status: 400 }) }, 0],
    [{ kind: "timeout", phase: "request", message: "" }, 1],
    [{ kind: "timeout", phase: "request", message: "", byClient: true }, 0],
    [{ kind: "reset", message: "" }, 1],
  ];
  test.each(cases)("%j counts %d", (failure, count) => {
    const entry = entryAt("http://h");
    countFailure(entry, failure);
    expect(entry.counters.failedRequests).toBe(count);
  });
});
