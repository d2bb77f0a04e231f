// A generation request from cache to stream: what is replayed and kept, and how clients share a call.

import { describe, expect, test } from "bun:test";
import { chatBody, chatEvents } from "../../test/support/openai-answers.ts";
import { contextOf, recordOf } from "../../test/support/request-records.ts";
import { waitFor, within } from "../../test/support/wait-for.ts";
import { newCounters, toBackend } from "../backends/backend.ts";
import type { BackendEntry } from "../backends/board.ts";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { ByteAllowance } from "../lib/byte-allowance.ts";
import { JsonBody } from "../lib/request-body.ts";
import { silentLogger } from "../logging/logger.ts";
import { PassReader } from "../protocols/pass-reader.ts";
import { EventFramer } from "../protocols/sse.ts";
import { createMemoryCache } from "../response-cache/memory.ts";
import type { UpstreamFailure } from "../upstream/failure.ts";
import { callEmbedded } from "../upstream/fetch-client.ts";
import type { LiveStream } from "../upstream/relay.ts";
import { Deduplicator } from "./deduplicate.ts";
import type { FallbackChains, FallbackResult } from "./fallback.ts";
import { createGenerator, type FlightsElsewhere, type Generated, type SharedCall } from "./generate.ts";
import { ASKING_BODY, type ModelRequest } from "./model-request.ts";

const encoder = new TextEncoder();
const EVENTS = chatEvents(["Grüße", " 🚂"]);

const entry: BackendEntry = {
  backend: toBackend(documentSchema.parse({ backends: [{ name: "b1", url: "http://h" }] }).backends[0]!),
  health: "ready",
  available: true,
  counters: newCounters(),
};

/** One call of the backend; a stream is written by the test. */
interface Upstream {
  signal: AbortSignal;
  send(...events: string[]): void;
  end(): void;
  cut(): void;
  /** How this backend's part ended. */
  ends: (UpstreamFailure | undefined)[];
  released: number;
}

interface BenchOptions {
  cache?: boolean;
  mode?: "deterministic" | "all" | "off";
  settings?: ConfigDocument;
  plain?: string;
  /** Attempts that the call takes. */
  attempts?: number;
  refusal?: Error;
  /** What went before the answer of a model that stands in. */
  reasons?: FallbackResult["reasons"];
  flights?: FlightsElsewhere;
}

function bench({
  cache = true,
  mode = "off",
  settings: more = {},
  plain = chatBody("hi"),
  attempts = 1,
  refusal,
  reasons = [],
  flights,
}: BenchOptions = {}) {
  const settings = documentSchema.parse({ deduplication: { mode }, response_cache: { enabled: cache }, ...more });
  const calls: Upstream[] = [];
  const chains: FallbackChains = {
    chainOf: () => [],
    targetsOf: (_, { model }) => [{ model, arms: [] }],
    async forward(context, request): Promise<FallbackResult> {
      const common = { entry, headers: {}, model: request.model, reasons };
      const upstream: Upstream = {
        signal: context.client.signal,
        ends: [],
        released: 0,
        send() {},
        end() {},
        cut() {},
      };
      calls.push(upstream);
      context.record.attempts += attempts;
      if (refusal !== undefined) throw refusal;
      if (!request.stream) {
        return { ...common, kind: "plain", body: encoder.encode(plain), contentType: "application/json" };
      }
      let source!: ReadableStreamDefaultController<Uint8Array>;
      const stream = new ReadableStream<Uint8Array>({
        start(controller) {
          source = controller;
        },
      });
      upstream.send = (...events) => {
        for (const event of events) source.enqueue(encoder.encode(event));
      };
      upstream.end = () => source.close();
      upstream.cut = () => source.error(new Error("cut"));
      const given = new AbortController();
      context.client.signal.addEventListener("abort", () => given.abort());
      given.signal.addEventListener("abort", () => {
        try {
          source.error(new Error("aborted"));
        } catch {
          // It was over already.
        }
      });
      const respond = async () => new Response(stream);
      const { answer: begun } = callEmbedded(respond, entry.backend, "/", { method: "POST", headers: {} });
      const answer = await begun;
      answer.pause();
      const exchange = {
        entry,
        abort: () => given.abort(),
        release: () => upstream.released++,
        pause() {},
        chunkReceived() {},
        answerComplete() {},
        failureOf: (): UpstreamFailure =>
          context.client.signal.aborted ? { kind: "aborted" } : { kind: "reset", message: "broken" },
      };
      const live = {
        stream: { answer, framer: new EventFramer(), firstEvents: encoder.encode(EVENTS[0]) },
        exchange,
        reader: new PassReader("chat", { choices: 1 }),
        finished: (failure?: UpstreamFailure) => void upstream.ends.push(failure),
      };
      return { ...common, kind: "stream", live: live as unknown as LiveStream };
    },
  };
  const deduplicator = new Deduplicator<SharedCall>(() => 0);
  const store = createMemoryCache({ capacity: 10, maxBytes: 1_000_000, now: () => 0 });
  const streams = new ByteAllowance(1_000_000);
  /** Whether no stream is kept for the cache now. */
  function keepsNone(): boolean {
    const isFree = streams.take(1_000_000);
    if (isFree) streams.giveBack(1_000_000);
    return isFree;
  }
  const forwarder = {
    hasOther: () => false,
    hasPool: () => false,
    forward: () => Promise.reject(new Error("not asked here")),
  };
  const generate = createGenerator({
    forwarder,
    chains,
    log: silentLogger(),
    deduplicator,
    flights,
    cache: cache ? { store, streams } : undefined,
    promptsDigest: "",
  });

  function ask(
    stream: boolean,
    fields: Record<string, unknown> = { temperature: 0 },
    headers: Record<string, string> = {},
    more: Partial<ModelRequest> = {},
  ) {
    const controller = new AbortController();
    const ends: (UpstreamFailure | undefined)[] = [];
    const value = { model: "m", stream, messages: [{ role: "user", content: "hi" }], ...fields };
    const context = contextOf(recordOf({ id: "own-1", requestId: "r", model: "m", stream }), {
      trace: { id: "r", traceparent: undefined, tracestate: undefined },
      settings,
      client: controller,
      caller: undefined,
      clientHeaders: new Headers(headers),
      peerAddress: () => undefined,
    });
    const request: ModelRequest = {
      operation: "chat",
      model: "m",
      stream,
      choices: 1,
      affinity: () => undefined,
      body: JsonBody.written(value),
      askedModel: "m",
      asking: ASKING_BODY,
      patience: 1,
      avoid: new Set(),
      ...more,
    };
    const generated = generate(context, request, {
      errorEvent: (failure) => `data: <${failure.kind}>\n\n`,
      ended: (failure) => void ends.push(failure),
      refused: () => undefined,
    });
    return { generated, ends, context, leave: () => controller.abort() };
  }
  return { ask, calls, deduplicator, store, keepsNone };
}

async function textOf(generated: Promise<Generated>): Promise<string> {
  const answer = await generated;
  if (answer.kind === "stream") return await new Response(answer.body).text();
  if (answer.kind === "failed") throw new Error("the request failed");
  return new TextDecoder().decode(answer.kind === "plain" ? answer.result.body : answer.replay.body);
}

describe("the cache", () => {
  test("plain: first a miss, then the same bytes without a call", async () => {
    const b = bench();
    expect(await b.ask(false).generated).toMatchObject({ kind: "plain", cache: "MISS" });
    const second = b.ask(false).generated;
    expect(await second).toMatchObject({ kind: "replayed", cache: "HIT" });
    expect(await textOf(second)).toBe(chatBody("hi"));
    expect(b.calls.length).toBe(1);
  });

  test("an answer that this client cannot go on with is a miss, and the new one takes its place", async () => {
    const b = bench();
    let isKnown = true;
    const asked: string[] = [];
    const mayReplay: ModelRequest["mayReplay"] = ({ form }) => {
      asked.push(form);
      return isKnown;
    };
    const ask = async () => (await b.ask(false, undefined, undefined, { mayReplay }).generated).cache;
    expect([await ask(), await ask()]).toEqual(["MISS", "HIT"]);
    isKnown = false;
    expect(await ask()).toBe("MISS");
    isKnown = true;
    expect(await ask()).toBe("HIT");
    expect({ asked, calls: b.calls.length }).toEqual({ asked: ["plain", "plain", "plain"], calls: 2 });
  });

  test("what names something that a vendor keeps is not looked up, and not kept", async () => {
    const b = bench();
    for (let count = 1; count <= 2; count++) {
      const { generated } = b.ask(false, undefined, undefined, { namesVendorState: true });
      expect([(await generated).cache, b.calls.length]).toEqual(["BYPASS", count]);
    }
    expect(b.store.stats().misses).toBe(0);
  });

  test("stream: kept when it is complete, and given again as the same bytes", async () => {
    const b = bench();
    const first = b.ask(true);
    const reading = textOf(first.generated);
    await waitFor("the call", () => b.calls.length === 1);
    b.calls[0]?.send(...EVENTS.slice(1));
    b.calls[0]?.end();
    expect(await within("the stream ends", reading)).toBe(EVENTS.join(""));
    expect((await first.generated).cache).toBe("MISS");
    expect(first.ends).toEqual([undefined]);
    const second = b.ask(true).generated;
    expect(await second).toMatchObject({ kind: "replayed", cache: "HIT" });
    expect(await textOf(second)).toBe(EVENTS.join(""));
    expect({ calls: b.calls.length, keepsNone: b.keepsNone() }).toEqual({ calls: 1, keepsNone: true });
  });

  test("stream: a broken one is not kept", async () => {
    const b = bench();
    const { generated, ends } = b.ask(true);
    const reading = textOf(generated);
    await waitFor("the call", () => b.calls.length === 1);
    b.calls[0]?.send(EVENTS[1] as string);
    await Bun.sleep(1);
    b.calls[0]?.cut();
    expect(await within("the stream ends", reading)).toBe(`${EVENTS[0]}${EVENTS[1]}data: <reset>\n\n`);
    expect(ends.map((failure) => failure?.kind)).toEqual(["reset"]);
    expect(await b.ask(false).generated).toMatchObject({ cache: "MISS" });
    expect(b.keepsNone()).toBe(true);
  });

  test("one that was left is not kept", async () => {
    const b = bench();
    const { generated, ends, leave } = b.ask(true);
    const answer = await generated;
    if (answer.kind !== "stream") throw new Error("no stream");
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    leave();
    await reader.cancel();
    await waitFor("the end", () => ends.length > 0);
    expect(ends).toEqual([{ kind: "aborted" }]);
    expect({ released: b.calls[0]?.released, keepsNone: b.keepsNone() }).toEqual({ released: 1, keepsNone: true });
    expect(await b.store.stats()).toMatchObject({ stores: 0 });
  });

  test.each([
    ["a temperature", { temperature: 1 }],
    ["a side effect", { temperature: 0, store: true }],
  ])("is passed by with %s", async (_title, fields) => {
    const b = bench();
    for (let count = 1; count <= 2; count++) {
      expect(await b.ask(false, fields).generated).toMatchObject({ kind: "plain", cache: "BYPASS" });
      expect(b.calls.length).toBe(count);
    }
  });

  test("an answer that is not worth keeping was no miss", async () => {
    const unfinished = '{"choices":[{"index":0,"message":{},"finish_reason":null}]}';
    const b = bench({ plain: unfinished });
    expect(await b.ask(false).generated).toMatchObject({ kind: "plain", cache: "BYPASS" });
    expect(await b.ask(false).generated).toMatchObject({ kind: "plain", cache: "BYPASS" });
  });

  test("does not keep what a model that stood in has said", async () => {
    const b = bench({ reasons: [{ model: "m", reason: "timeout" }] });
    for (let count = 1; count <= 2; count++) {
      expect((await b.ask(false).generated).kind).toBe("plain");
      expect(b.calls.length).toBe(count);
    }
    const reading = textOf(b.ask(true).generated);
    await waitFor("the call", () => b.calls.length === 3);
    b.calls[2]?.send(...EVENTS.slice(1));
    b.calls[2]?.end();
    expect(await within("the stream ends", reading)).toBe(EVENTS.join(""));
    expect(await b.store.stats()).toMatchObject({ stores: 0 });
  });

  test("off: it has no say", async () => {
    const b = bench({ cache: false });
    for (let count = 0; count < 2; count++) expect((await b.ask(false).generated).cache).toBeUndefined();
    expect(b.calls.length).toBe(2);
  });
});

describe("shared calls", () => {
  const shared = (more: BenchOptions = {}) => bench({ cache: false, mode: "deterministic", ...more });

  test("plain: one call, the same answer for all", async () => {
    const b = shared();
    const asked = [b.ask(false), b.ask(false), b.ask(false)];
    expect(await Promise.all(asked.map(({ generated }) => textOf(generated)))).toEqual(Array(3).fill(chatBody("hi")));
    expect(asked.map(({ context }) => context.record.backend)).toEqual(["b1", "b1", "b1"]);
    expect(b.calls.length).toBe(1);
  });

  test("every log line has the attempts of the call, also when nobody could answer", async () => {
    for (const more of [{}, { refusal: new Error("nobody") }]) {
      const b = shared({ attempts: 3, ...more });
      const asked = [b.ask(false), b.ask(false), b.ask(false)];
      const outcomes = await Promise.allSettled(asked.map(({ generated }) => generated));
      expect(outcomes.map(({ status }) => status)).toEqual(Array(3).fill("refusal" in more ? "rejected" : "fulfilled"));
      expect(asked.map(({ context }) => context.record.attempts)).toEqual([3, 3, 3]);
      expect(b.calls.length).toBe(1);
    }
  });

  test("stream: attempts of a takeover are told to all", async () => {
    const b = shared();
    const asked = [b.ask(true), b.ask(true)];
    const reading = asked.map(({ generated }) => textOf(generated));
    await asked[0]?.generated;
    (asked[0]?.context.record as { attempts: number }).attempts++;
    b.calls[0]?.send(...EVENTS.slice(1));
    b.calls[0]?.end();
    await within("all end", Promise.all(reading));
    expect(asked.map(({ context }) => context.record.attempts)).toEqual([2, 2]);
  });

  test("only equal requests with temperature 0 share", async () => {
    const b = shared();
    await Promise.all(
      [{ temperature: 0 }, { temperature: 1 }, { temperature: 1 }, { temperature: 0, seed: 1 }].map(
        (fields) => b.ask(false, fields).generated,
      ),
    );
    expect(b.calls.length).toBe(4);
  });

  test("stream: every client gets identical bytes, also one that joins late", async () => {
    const b = shared();
    const [first, second] = [b.ask(true), b.ask(true)];
    const reading = [first, second].map(({ generated }) => textOf(generated));
    await waitFor("the call", () => b.calls.length === 1);
    b.calls[0]?.send(EVENTS[1] as string);
    await Bun.sleep(5);
    const third = b.ask(true);
    reading.push(textOf(third.generated));
    await third.generated;
    b.calls[0]?.send(...EVENTS.slice(2));
    b.calls[0]?.end();
    expect(await within("all end", Promise.all(reading))).toEqual(Array(3).fill(EVENTS.join("")));
    expect([first, second, third].map(({ ends }) => ends)).toEqual([[undefined], [undefined], [undefined]]);
    expect({ calls: b.calls.length, ends: b.calls[0]?.ends }).toEqual({ calls: 1, ends: [undefined] });
    expect(b.deduplicator).toMatchObject({ flights: new Map(), heldBytes: 0 });
  });

  test("when all leave while another process is asked to share its call, no call is made here", async () => {
    const asked: string[] = [];
    const landed: string[] = [];
    const b = bench({
      mode: "all",
      flights: {
        join(key, _ttlMs, signal) {
          asked.push(key);
          return new Promise((resolve) => signal.addEventListener("abort", () => resolve(undefined)));
        },
        landed: (key) => void landed.push(key),
      },
    });
    const { generated, leave } = b.ask(false);
    await waitFor("the other process is asked", () => asked.length === 1);
    leave();
    await expect(generated).rejects.toThrow();
    await waitFor("the flight is given up", () => landed.length === 1);
    expect(landed).toEqual(asked);
    expect(b.calls).toEqual([]);
  });

  test("stream: when the leader leaves, the others read on; when the last one leaves, the call ends", async () => {
    const b = shared();
    const [leader, follower] = [b.ask(true), b.ask(true)];
    const readers = [];
    for (const { generated } of [leader, follower]) {
      const answer = await generated;
      if (answer.kind !== "stream") throw new Error("no stream");
      const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
      await reader.read();
      readers.push(reader);
    }
    leader.leave();
    await waitFor("the leader's end", () => leader.ends.length > 0);
    expect(leader.ends).toEqual([{ kind: "aborted" }]);
    expect(b.calls[0]?.signal.aborted).toBe(false);
    b.calls[0]?.send(EVENTS[1] as string);
    const next = await within("the follower reads on", readers[1]!.read());
    expect(new TextDecoder().decode(next.value)).toBe(EVENTS[1] as string);
    expect(b.calls[0]?.released).toBe(0);
    follower.leave();
    await waitFor("the call's end", () => b.calls[0]?.ends.length === 1);
    expect(b.calls[0]).toMatchObject({ ends: [{ kind: "aborted" }], released: 1 });
    expect(follower.ends).toEqual([{ kind: "aborted" }]);
    expect(b.calls.length).toBe(1);
  });

  test("stream: a break is told to every client", async () => {
    const b = shared();
    const asked = [b.ask(true), b.ask(true)];
    const reading = asked.map(({ generated }) => textOf(generated));
    await waitFor("the call", () => b.calls.length === 1);
    await Bun.sleep(1);
    b.calls[0]?.cut();
    expect(await within("all end", Promise.all(reading))).toEqual(Array(2).fill(`${EVENTS[0]}data: <reset>\n\n`));
    expect(asked.map(({ ends }) => ends.map((failure) => failure?.kind))).toEqual([["reset"], ["reset"]]);
  });

  test("with the cache: one call, kept once, then a hit", async () => {
    const b = bench({ mode: "deterministic" });
    const asked = [b.ask(true), b.ask(true)].map(({ generated }) => textOf(generated));
    await waitFor("the call", () => b.calls.length === 1);
    b.calls[0]?.send(...EVENTS.slice(1));
    b.calls[0]?.end();
    expect(await within("all end", Promise.all(asked))).toEqual(Array(2).fill(EVENTS.join("")));
    expect(await b.ask(true).generated).toMatchObject({ kind: "replayed", cache: "HIT" });
    expect(await b.store.stats()).toMatchObject({ stores: 1 });
    expect(b.calls.length).toBe(1);
  });
});
