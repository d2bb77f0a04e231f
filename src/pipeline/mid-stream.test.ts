// Who takes over a stream that broke off: when, in which order, with which request, and when nobody may.

import { describe, expect, test } from "bun:test";
import { chatEvents } from "../../test/support/openai-answers.ts";
import { contextOf, recordOf } from "../../test/support/request-records.ts";
import { translationBy } from "../../test/support/second-stream.ts";
import { newCounters, toBackend } from "../backends/backend.ts";
import type { BackendEntry } from "../backends/board.ts";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { JsonBody } from "../lib/request-body.ts";
import { silentLogger } from "../logging/logger.ts";
import { PassReader } from "../protocols/pass-reader.ts";
import type { ClientProtocol } from "../protocols/protocol.ts";
import type { UpstreamFailure } from "../upstream/failure.ts";
import type { LiveStream } from "../upstream/relay.ts";
import type { ForwardResult } from "./attempt.ts";
import { createFallbackChains, type FallbackResult } from "./fallback.ts";
import type { Forwarder } from "./forward.ts";
import { takeoverFor } from "./mid-stream.ts";
import { ASKING_BODY, type ModelRequest } from "./model-request.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function entryOf(name: string): BackendEntry {
  const settings = documentSchema.parse({ backends: [{ name, url: "http://h" }] });
  return { backend: toBackend(settings.backends[0]!), health: "ready", available: true, counters: newCounters() };
}

const reset: UpstreamFailure = { kind: "reset", message: "broken" };
const SENT = chatEvents(["Hello"], { finishReason: null, done: false }).map((event) => encoder.encode(event));

interface BenchOptions {
  chains?: Record<string, string[]>;
  fallback?: ConfigDocument["fallback"];
  goOn?: boolean;
  request?: Partial<ModelRequest>;
  /** The backends of each model, in order of choice; null = it answers with an error. */
  backends?: Record<string, string[]>;
  failing?: readonly string[];
  /** Those that go on exactly. */
  exact?: readonly string[];
  /** The model that answered first. */
  first?: string;
  /** Backends that broke off can be asked again when no other is left. */
  again?: boolean;
  onForward?(): void;
}

function bench(options: BenchOptions = {}) {
  const { backends = { m: ["a", "b"], n: ["c"] }, failing = [], exact = [], first = "m" } = options;
  const serving = ({ model, goesOn }: Pick<ModelRequest, "model" | "goesOn">) =>
    (backends[model] ?? []).filter((name) => goesOn !== true || exact.includes(name));
  const settings = documentSchema.parse({
    fallback: { fallback_chains: options.chains ?? { m: ["n"] }, ...options.fallback },
    streaming: { mid_stream_fallback: { enabled: options.goOn ?? false, continuation_prompt: "go on" } },
  });
  const requests: ModelRequest[] = [];
  const asked: string[] = [];
  const events: string[] = [];
  const controller = new AbortController();
  const forwarder: Forwarder = {
    hasOther: (request, avoid) => serving(request).some((name) => !avoid.has(name)),
    hasPool: (model) => (backends[model] ?? []).length > 1,
    async forward(_context, request): Promise<ForwardResult> {
      requests.push({ ...request, avoid: new Set(request.avoid) });
      const able = serving(request);
      const other = able.find((each) => !request.avoid.has(each));
      const name = options.again ? (other ?? able[0]) : other;
      if (name === undefined) throw new GatewayError(ERRORS.modelNotFound, "nobody");
      asked.push(`${request.model}:${name}`);
      options.onForward?.();
      const entry = entryOf(name);
      if (failing.includes(name)) return { kind: "failed", entry, failure: reset };
      const exchange = {
        abort: () => void events.push(`abort ${name}`),
        release: () => void events.push(`release ${name}`),
      };
      const reader = new PassReader("chat", { choices: 1 });
      const finished = (failure?: UpstreamFailure) => void events.push(`finished ${name} ${failure?.kind}`);
      return { kind: "stream", entry, headers: {}, live: { exchange, reader, finished } as unknown as LiveStream };
    },
  };
  const context = contextOf(recordOf({ id: "own-1", requestId: "request-1", model: "m", stream: true }), {
    trace: { id: "request-1", traceparent: undefined, tracestate: undefined },
    settings,
    client: controller,
    caller: undefined,
    clientHeaders: new Headers(),
    peerAddress: () => undefined,
  });
  const request: ModelRequest = {
    operation: "chat",
    model: "m",
    stream: true,
    choices: 1,
    affinity: () => undefined,
    body: new JsonBody(encoder.encode('{"model":"m", "messages":[{"role":"user","content":"hi"}], "n":1.0}'), {
      model: "m",
      messages: [{ role: "user", content: "hi" }],
      n: 1,
    }),
    askedModel: "m",
    asking: ASKING_BODY,
    patience: 1,
    avoid: new Set(),
    ...options.request,
  };
  const result = {
    kind: "stream",
    entry: entryOf((backends[first] as string[])[0] as string),
    model: first,
    reasons: [],
  };
  const takeover = takeoverFor(
    { forwarder, chains: createFallbackChains(forwarder), log: silentLogger() },
    context,
    request,
    result as unknown as FallbackResult,
  );
  return {
    takeover,
    requests,
    asked,
    events,
    context,
    controller,
    after: (failure: UpstreamFailure = reset, sent: readonly Uint8Array[] = SENT) =>
      takeover?.continueAfter(failure, sent) as Promise<LiveStream>,
  };
}

describe("nobody may take over", () => {
  test.each([
    ["without a chain and another backend", { chains: {}, backends: { m: ["a"] } }],
    ["with fallback switched off", { fallback: { enabled: false }, backends: { m: ["a"] } }],
    ["several choices", { request: { choices: 2 } }],
    ["embeddings", { request: { operation: "embeddings" as const } }],
  ])("%s", (_title, options) => {
    expect(bench(options).takeover).toBeUndefined();
    expect(bench().takeover).toBeDefined();
  });

  test.each([
    ["a tool call was begun", [...SENT, encoder.encode('data: {"choices":[{"delta":{"tool_calls":[{}]}}]}\n\n')]],
    ["the answer was finished", [...SENT, encoder.encode('data: {"choices":[{"finish_reason":"stop"}]}\n\n')]],
  ])("%s", async (_title, sent) => {
    const b = bench();
    expect(await b.after(reset, sent)).toBeUndefined();
    expect(b.asked).toEqual([]);
  });

  test.each([
    ["the client left", { kind: "aborted" } as const],
    [
      "a client's own error",
      { kind: "status", status: 400, body: new Uint8Array(), retryAfterMs: undefined, headers: {} } as const,
    ],
  ])("%s", async (_title, failure) => {
    const b = bench();
    expect(await b.after(failure)).toBeUndefined();
    expect(b.asked).toEqual([]);
  });

  test("the policy does not want it", async () => {
    const fallback = { fallback_policy: { trigger_conditions: { connection_error: false } } };
    const b = bench({ fallback });
    expect(await b.after(reset)).toBeUndefined();
    expect(await b.after({ kind: "timeout", phase: "between_chunks", message: "silent" })).toBeDefined();
  });

  test("all others fail or are unknown", async () => {
    const b = bench({ failing: ["b", "c"], chains: { m: ["n", "o"] } });
    expect(await b.after()).toBeUndefined();
    expect(b.asked).toEqual(["m:b", "n:c"]);
    expect(b.context.record.answeredBy).toBeUndefined();
  });
});

describe("the order", () => {
  test("is a backend that goes on exactly, before any other of the model and of the chain", async () => {
    const b = bench({ backends: { m: ["a", "b", "x"], n: ["c"] }, exact: ["x"] });
    expect(await b.after()).toBeDefined();
    expect(await b.after()).toBeDefined();
    expect(b.asked).toEqual(["m:x", "m:b"]);
    expect(b.requests.map(({ goesOn }) => goesOn)).toEqual([true, false]);
    expect(b.requests.map(({ body }) => (body.value.messages as object[]).length)).toEqual([2, 1]);
  });

  test("is that one alone without a chain", async () => {
    const backends = { m: ["a", "b", "x"], n: ["c"] };
    const b = bench({ backends, exact: ["x"], chains: {}, failing: ["x"] });
    expect(await b.after()).toBeUndefined();
    expect(b.asked).toEqual(["m:x"]);
    const nobody = bench({ backends, chains: {} });
    expect(await nobody.after()).toBeUndefined();
    expect(nobody.asked).toEqual([]);
  });

  test("is the other backends of the model, then the chain; those that broke off are avoided", async () => {
    const b = bench({ fallback: { fallback_policy: { max_fallback_attempts: 5 } } });
    for (let count = 0; count < 2; count++) expect(await b.after()).toBeDefined();
    expect(await b.after()).toBeUndefined();
    expect(b.asked).toEqual(["m:b", "n:c"]);
    expect(b.requests.map(({ avoid }) => [...avoid])).toEqual([["a"], ["a", "b"], ["a", "b", "c"]]);
    expect(b.context.record.answeredBy).toBe("n");
  });

  test("begins at the model that was answering", async () => {
    const backends = { m: ["a", "b"], n: ["c"], o: ["d"] };
    const b = bench({ chains: { m: ["n", "o"] }, backends, first: "n" });
    await b.after();
    expect(b.asked).toEqual(["o:d"]);
  });

  test("asks others along the whole chain before one that broke off, and that one rather than nobody", async () => {
    const fallback = { fallback_policy: { max_fallback_attempts: 2 } };
    const b = bench({ again: true, backends: { m: ["a"], n: ["c"] }, fallback });
    expect(await b.after()).toBeDefined();
    expect(await b.after()).toBeDefined();
    expect(b.asked).toEqual(["n:c", "n:c"]);
    const alone = bench({ again: true, backends: { m: ["a"] } });
    expect(await alone.after()).toBeDefined();
    expect(alone.asked).toEqual(["m:a"]);
  });

  test("ends after max_fallback_attempts switches", async () => {
    const backends = { m: ["a", "b", "c", "d"] };
    const b = bench({ backends, fallback: { fallback_policy: { max_fallback_attempts: 2 } } });
    expect(await b.after()).toBeDefined();
    expect(await b.after()).toBeDefined();
    expect(await b.after()).toBeUndefined();
    expect(b.asked).toEqual(["m:b", "m:c"]);
  });

  test("a switch within the model is no fallback for the record", async () => {
    const b = bench();
    await b.after();
    expect(b.context.record.answeredBy).toBeUndefined();
  });
});

describe("the request of a successor", () => {
  const bodyOf = (request: ModelRequest | undefined) => decoder.decode(request?.body.bytes());

  test("starts anew with its own model and longer timeouts", async () => {
    const b = bench({ backends: { m: ["a"], n: ["c"] } });
    await b.after();
    expect(bodyOf(b.requests[0])).toBe('{"model":"n", "messages":[{"role":"user","content":"hi"}], "n":1.0}');
    expect(b.requests[0]).toMatchObject({ model: "n", patience: 1.5, stream: true, operation: "chat" });
    const reader = translationBy("chat", b.requests[0]?.asking.client as ClientProtocol).stream();
    const spliced = decoder.decode(reader.push(encoder.encode(chatEvents(["Hello", " you"]).join(""))));
    expect(spliced).toContain('"content":" you"');
    expect(spliced).not.toContain("Hello");
  });

  test("carries what was sent when that is wished, and its answer is joined as it comes", async () => {
    const b = bench({ goOn: true, backends: { m: ["a"], n: ["c"] } });
    const next = await b.after();
    expect(JSON.parse(bodyOf(b.requests[0]))).toEqual({
      model: "n",
      messages: [
        { role: "user", content: "hi" },
        { role: "assistant", content: "Hello" },
        { role: "user", content: "go on" },
      ],
      n: 1,
    });
    expect(decoder.decode(next.reader.push(encoder.encode(chatEvents(["Hello"]).join(""))))).toContain("Hello");
  });

  test.each([
    ["nothing", []],
    ["nothing but blanks", [" \n"]],
  ])("does not when %s was sent", async (_, texts) => {
    const b = bench({ goOn: true });
    const sent = chatEvents(texts, { finishReason: null, done: false }).map((event) => encoder.encode(event));
    await b.after(reset, sent);
    expect(JSON.parse(bodyOf(b.requests[0])).messages.length).toBe(1);
  });
});

test("the client leaves just as a successor is found: the successor is freed", async () => {
  const b: ReturnType<typeof bench> = bench({ onForward: () => b.controller.abort() });
  expect(await b.after()).toBeUndefined();
  expect(b.asked).toEqual(["m:b"]);
  expect(b.events.toSorted()).toEqual(["abort b", "finished b aborted", "release b"]);
});
