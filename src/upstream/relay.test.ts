// Streams from a real backend through the relay to a real client: whole events only, one end, and never a false one.

import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { type Answer, FakeBackend } from "../../test/support/fake-backend.ts";
import { chatEvents, eventStream, sseEvent } from "../../test/support/openai-answers.ts";
import { RawConnection } from "../../test/support/raw-http.ts";
import { readSent, restTranslation } from "../../test/support/second-stream.ts";
import { type ByteReader, readSse, readUntil } from "../../test/support/sse-reader.ts";
import { waitFor, within } from "../../test/support/wait-for.ts";
import { newCounters, toBackend } from "../backends/backend.ts";
import type { BackendEntry } from "../backends/board.ts";
import { documentSchema } from "../config/sections/registry.ts";
import { ByteAllowance } from "../lib/byte-allowance.ts";
import { createDeadlines } from "../lib/deadlines.ts";
import { backendProtocol, clientProtocol } from "../protocols/registry.ts";
import { createTranslation, type Translation } from "../protocols/translate.ts";
import type { UpstreamFailure } from "./failure.ts";
import { type LiveStream, relayStream, type Takeover } from "./relay.ts";
import { createSender, type OutgoingRequest, type SendOutcome } from "./send.ts";
import { createTransport } from "./transport.ts";

const LONG_MS = 60_000;
const ERROR_EVENT = 'data: {"error":{"message":"the gateway says so"}}\n\n';

const now = () => performance.now();
const deadlines = createDeadlines(now);
const sender = createSender(
  createTransport(async () => new Response("{}")),
  { deadlines, now },
);

let backend: FakeBackend;
let gateway: Bun.Server<undefined>;
let entry: BackendEntry;
/** How each relayed stream ended, in order. */
let endings: (UpstreamFailure | undefined)[] = [];
/** How each backend's part ended, in order; without a takeover just the same. */
let liveEndings: (UpstreamFailure | undefined)[] = [];
/** Who may take over; undefined = nobody ever does. */
let successors: BackendEntry[] | undefined;
/** Why a successor was looked for. */
let searches: UpstreamFailure[] = [];
/** Called when a successor's stream is open, before the relay gets it. */
let beforeTakeover: () => unknown = () => {};
/** What all streams together may keep for a takeover. */
let transcripts: ByteAllowance | undefined;
let limits = { betweenChunksMs: LONG_MS, requestMs: LONG_MS };
let choices = 1;
/** Set where the client reads another format. */
let translation: Translation | undefined;

let others: { backend: FakeBackend; entry: BackendEntry }[] = [];

function liveOf({ stream, exchange, reader }: Omit<LiveStream, "finished">): LiveStream {
  return { stream, exchange, reader, finished: (failure) => void liveEndings.push(failure) };
}

/** A takeover by the successors, in order. */
function takeoverBy(
  waiting: BackendEntry[],
  open: (entry: BackendEntry, translation: Translation | undefined) => Promise<SendOutcome>,
): Takeover {
  let switches = 0;
  return {
    get hasHappened() {
      return switches > 0;
    },
    async continueAfter(failure, sent) {
      searches.push(failure);
      const seen = readSent("chat", ...sent);
      const next = waiting.shift();
      if (seen === undefined || next === undefined) return undefined;
      const outcome = await open(next, restTranslation("chat", seen, "restarted"));
      if (!outcome.ok || outcome.kind !== "stream") throw new Error("the successor has no stream");
      await beforeTakeover();
      switches++;
      return liveOf(outcome);
    },
  };
}

beforeAll(() => {
  backend = new FakeBackend();
  const spares = [new FakeBackend(), new FakeBackend()];
  const settings = documentSchema.parse({
    backends: [backend, ...spares].map(({ url }, index) => ({ name: `b${index + 1}`, url })),
  });
  const entries = settings.backends.map(
    (each): BackendEntry => ({ backend: toBackend(each), health: "ready", available: true, counters: newCounters() }),
  );
  entry = entries[0]!;
  others = spares.map((other, index) => ({ backend: other, entry: entries[index + 1]! }));
  gateway = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const outgoing: OutgoingRequest = {
        operation: "chat",
        model: "m",
        stream: true,
        choices,
        translation,
        body: await request.bytes(),
        clientHeaders: request.headers,
        trace: { id: "t", traceparent: undefined, tracestate: undefined },
        client: request,
        timeouts: {
          connectMs: LONG_MS,
          firstByteMs: LONG_MS,
          betweenChunksMs: limits.betweenChunksMs,
          requestDeadlineMs: now() + limits.requestMs,
        },
      };
      const open = (to: BackendEntry, by: Translation | undefined) =>
        sender.send(to, { ...outgoing, translation: by }, settings);
      const outcome = await open(entry, translation);
      if (!outcome.ok) return new Response(`not relayed: ${outcome.failure.kind}`, { status: 502 });
      if (outcome.kind !== "stream") return new Response("no stream", { status: 500 });
      const body = relayStream(liveOf(outcome), () => ERROR_EVENT, {
        takeover: successors && takeoverBy(successors, open),
        ...(transcripts !== undefined && { transcripts }),
        tap: undefined,
        finished: (failure) => void endings.push(failure),
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
  });
});
afterAll(async () => {
  await gateway.stop(true);
  for (const each of [backend, ...others.map((other) => other.backend)]) each.stop();
});
afterEach(async () => {
  backend.reset();
  for (const other of others) other.backend.reset();
  const entries = [entry, ...others.map((other) => other.entry)];
  await waitFor("nothing is in flight", () => entries.every(({ counters }) => counters.inFlight === 0));
  expect(deadlines.size).toBe(0);
  if (successors === undefined) expect(liveEndings).toEqual(endings);
  successors = undefined;
  searches = [];
  beforeTakeover = () => {};
  transcripts = undefined;
  endings = [];
  liveEndings = [];
  limits = { betweenChunksMs: LONG_MS, requestMs: LONG_MS };
  choices = 1;
  translation = undefined;
});

function ask(signal?: AbortSignal): Promise<Response> {
  return fetch(gateway.url, { method: "POST", body: "{}", ...(signal === undefined ? {} : { signal }) });
}

/** The pieces of a stream, the one at the index held back until the client has all that came before it. */
function heldBack(pieces: readonly (string | Uint8Array)[], index: number, more: Answer = {}) {
  const gate = Promise.withResolvers<void>();
  const before = Buffer.concat(pieces.slice(0, index).map((piece) => Buffer.from(piece)));
  let seenBytes = 0;
  return {
    answer: eventStream(pieces, { ...more, beforeChunk: (at) => (at === index ? gate.promise : undefined) }),
    clientSaw(bytes: number) {
      seenBytes += bytes;
      if (seenBytes >= before.length) gate.resolve();
    },
  };
}

/** The client's view of an answer that ends by itself, and how the relay saw it end. */
async function relayed(answer: Answer, clientSaw: (bytes: number) => void = () => {}) {
  backend.answer = answer;
  const response = await ask();
  const observed = response.body?.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(bytes, controller) {
        clientSaw(bytes.length);
        controller.enqueue(bytes);
      },
    }),
  );
  const reading = await within("the stream ends", readSse(new Response(observed)));
  if (response.status === 200) await waitFor("the relay is told of the end", () => endings.length > 0);
  return { ...reading, status: response.status, ending: endings.at(-1), endingCount: endings.length };
}

const EVENTS = chatEvents(['Grüße 🚂 } ] "', "data: [DONE]"]);

describe("a complete stream", () => {
  const whole = EVENTS.join("");
  test.each([[undefined], [1], [7], [100]])("passes byte for byte, in pieces of %p", async (chunkBytes) => {
    const answer = eventStream(EVENTS, chunkBytes === undefined ? {} : { chunkBytes });
    const { text, ending, end, endingCount } = await relayed(answer);
    expect(text).toBe(whole);
    expect({ ending, end, endingCount }).toEqual({ ending: undefined, end: "clean", endingCount: 1 });
  });

  test.each([
    [
      "comments, event names and CRLF",
      `: hi\r\n\r\nevent: x\r\nid: 1\r\ndata: {"choices":[]}\r\n\r\ndata: [DONE]\r\n\r\n`,
    ],
    ["the marker without its space", `${EVENTS[0]}data:[DONE]\n\n`],
    ["no answer at all but the marker", "data: [DONE]\n\n"],
  ])("passes byte for byte: %s", async (_title, text) => {
    const relay = await relayed(eventStream(text));
    expect(relay.text).toBe(text);
    expect(relay.ending).toBeUndefined();
  });

  test("an event goes on at once, not with the next one", async () => {
    const gate = Promise.withResolvers<void>();
    backend.answer = eventStream(EVENTS, { beforeChunk: (index) => (index === 2 ? gate.promise : undefined) });
    const reader = (await ask()).body?.getReader() as ByteReader;
    await within("the first events arrive", readUntil(reader, "Grüße"));
    gate.resolve();
    await within("the rest arrives", readUntil(reader, EVENTS.at(-1) as string));
    await reader.cancel();
  });

  test("a large one passes byte for byte", async () => {
    const events = chatEvents(Array.from({ length: 40 }, (_, index) => `${index}`.repeat(20_000)));
    const { bytes } = await relayed(eventStream(events, { chunkBytes: 64 * 1024 }));
    expect(bytes.equals(Buffer.from(events.join("")))).toBe(true);
  });

  test("whose connection breaks only after the marker is complete", async () => {
    const how = { breakAfterBytes: Buffer.byteLength(whole) + 1, breakWith: "reset" as const };
    const { answer, clientSaw } = heldBack([...EVENTS, ": "], EVENTS.length, how);
    const { text, ending } = await relayed(answer, clientSaw);
    expect(text).toBe(whole);
    expect(ending).toBeUndefined();
  });

  test("whose connection stays open after the marker ends all the same", async () => {
    const forever = new Promise<void>(() => {});
    const last = EVENTS.length;
    const { text, ending } = await relayed(
      eventStream([...EVENTS, ": late\n\n"], { beforeChunk: (index) => (index === last ? forever : undefined) }),
    );
    expect(text).toBe(whole);
    expect(ending).toBeUndefined();
  });
});

describe("a stream without its marker", () => {
  test.each([
    ["finished", chatEvents(["a"], { done: false })],
    ["finished by length", chatEvents(["a"], { done: false, finishReason: "length" })],
    [
      "finished, usage behind it",
      [...chatEvents(["a"], { done: false }), sseEvent({ choices: [], usage: { total_tokens: 1 } })],
    ],
  ])("gets it: %s", async (_title, events) => {
    const { text, ending, endingCount } = await relayed(eventStream(events));
    expect(text).toBe(`${events.join("")}data: [DONE]\n\n`);
    expect({ ending, endingCount }).toEqual({ ending: undefined, endingCount: 1 });
  });

  test("does not get it when it is not finished, but an error", async () => {
    const events = chatEvents(["a"], { finishReason: null, done: false });
    const { text, ending } = await relayed(eventStream(events));
    expect(text).toBe(events.join("") + ERROR_EVENT);
    expect(ending?.kind).toBe("reset");
  });

  test("of several choices is finished when all of them are", async () => {
    choices = 2;
    const finish = (index: number) => sseEvent({ choices: [{ index, delta: {}, finish_reason: "stop" }] });
    const both = await relayed(eventStream([EVENTS[0] as string, finish(0), finish(1)]));
    expect(both.text).toEndWith("data: [DONE]\n\n");
    expect(both.ending).toBeUndefined();
    const one = await relayed(eventStream([EVENTS[0] as string, finish(0)]));
    expect(one.text).toEndWith(ERROR_EVENT);
    expect(one.ending?.kind).toBe("reset");
  });

  test("lacking only the last empty line is completed", async () => {
    for (const missing of [1, 2]) {
      const { text, ending } = await relayed(eventStream(EVENTS.join("").slice(0, -missing)));
      expect(text.trimEnd()).toBe(EVENTS.join("").trimEnd());
      expect(text).toEndWith("\n\n");
      expect(ending).toBeUndefined();
    }
  });
});

describe("a stream that is cut", () => {
  const events = chatEvents(['x} "] \\', "ü"]);
  const whole = Buffer.from(events.join(""));
  const finishEnd = Buffer.byteLength(events.slice(0, -1).join(""));
  // By an orderly end the body looks complete to HTTP; by a reset, or inside a chunk, it does not.
  const manners: [title: string, how: Partial<Answer>][] = [
    ["by a reset", { breakWith: "reset" }],
    ["by an end inside a chunk", { breakWith: "fin" }],
    ["by an end of a body without length", { breakWith: "fin", framing: "close" }],
  ];
  for (const [title, how] of manners) {
    test(`at every byte, ${title}: whole events, then one end that is true`, async () => {
      const firstEnd = Buffer.byteLength(events[0] as string);
      for (let cutAt = 1; cutAt < whole.length; cutAt++) {
        endings = [];
        liveEndings = [];
        const first = Math.min(cutAt, firstEnd);
        const more = { framing: "chunked" as const, ...how, breakAfterBytes: cutAt };
        const pieces = [whole.subarray(0, first), whole.subarray(first)];
        // The client has the first event before the connection breaks: what is told of a break is told in the stream.
        const held = cutAt < firstEnd ? { answer: eventStream(whole, more) } : heldBack(pieces, 1, more);
        const relay = await relayed(held.answer, "clientSaw" in held ? held.clientSaw : undefined);
        const { text, status, ending, endingCount } = relay;
        expect({ cutAt, status }).toEqual({ cutAt, status: cutAt < firstEnd ? 502 : 200 });
        if (status !== 200) continue;
        const sent = whole.toString("utf8");
        const isComplete = text.trimEnd() === sent.trimEnd();
        const gotMarker = text === `${whole.toString("utf8", 0, finishEnd)}data: [DONE]\n\n`;
        if (isComplete || gotMarker) {
          // All the client needs was there; the connection's manner of ending takes nothing of it away.
          expect(cutAt).toBeGreaterThanOrEqual(finishEnd - 2);
          expect({ cutAt, ending }).toEqual({ cutAt, ending: undefined });
          continue;
        }
        const received = text.split("\n\n");
        expect(received.pop()).toBe("");
        expect(`${received.pop()}\n\n`).toBe(ERROR_EVENT);
        expect(received.length).toBeGreaterThanOrEqual(1);
        expect(received).toEqual(sent.split("\n\n").slice(0, received.length));
        expect({ cutAt, kind: ending?.kind, endingCount }).toEqual({ cutAt, kind: "reset", endingCount: 1 });
      }
    }, 60_000);
  }

  test("an event beyond all measure ends it with one error", async () => {
    const piece = "x".repeat(1024 * 1024);
    const { text, ending } = await relayed(eventStream([events[0] as string, ...Array<string>(34).fill(piece)]));
    expect(text).toBe(events[0] + ERROR_EVENT);
    expect(ending?.kind).toBe("invalid-response");
    await within("the backend's connection is given up", backend.lastRequest.closed);
  });
});

test("a broken stream whose events make no sense together ends with one error", async () => {
  const client = clientProtocol("messages");
  const request = client.decodeRequest({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] });
  const context = { model: "m", createdAt: 1, nonce: "0".repeat(32), request };
  translation = createTranslation({ client, backend: backendProtocol("chat"), context, transforms: [] });
  const call = { index: 0, id: "call_1", function: { arguments: "{}" } }; // of no tool
  const pieces = [
    EVENTS[0] as string,
    sseEvent({ choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: "tool_calls" }] }),
    "data: never\n\n",
  ];
  const whole = Buffer.byteLength(pieces[0] + (pieces[1] as string));
  backend.answer = eventStream(pieces, { breakAfterBytes: whole, breakWith: "reset", betweenChunksMs: 50 });
  const { text, ending, endingCount } = await relayed(backend.answer);
  expect(text.split("event: error\n").length).toBe(2);
  expect({ kind: ending?.kind, endingCount }).toEqual({ kind: "reset", endingCount: 1 });
});

describe("an error event of the backend", () => {
  const told = 'data: {"error":{"message":"cuda out of memory","code":500}}\n\n';

  test("passes as it is, and the gateway adds none", async () => {
    const { text, ending, endingCount } = await relayed(eventStream([EVENTS[0] as string, told]));
    expect(text).toBe(EVENTS[0] + told);
    expect({ ending, endingCount }).toMatchObject({
      ending: { kind: "told-in-stream", told: { status: 500 } },
      endingCount: 1,
    });
  });

  test("followed by the marker is still an error", async () => {
    const { text, ending } = await relayed(eventStream([EVENTS[0] as string, told, "data: [DONE]\n\n"]));
    expect(text).toBe(`${EVENTS[0]}${told}data: [DONE]\n\n`);
    expect(ending).toMatchObject({ kind: "told-in-stream", told: { status: 500 } });
  });

  test("followed by a broken connection is not told twice", async () => {
    const how = { breakAfterBytes: Buffer.byteLength(EVENTS[0] + told), breakWith: "reset" as const };
    const { answer, clientSaw } = heldBack([EVENTS[0] as string, told, "data: more\n\n"], 2, how);
    const { text, ending } = await relayed(answer, clientSaw);
    expect(text).toBe(EVENTS[0] + told);
    expect(ending?.kind).toBe("told-in-stream");
  });
});

describe("timeouts", () => {
  test("a silence between events ends the stream with one error", async () => {
    limits = { ...limits, betweenChunksMs: 100 };
    const forever = new Promise<void>(() => {});
    const { text, ending, endingCount } = await relayed(
      eventStream(EVENTS, { beforeChunk: (index) => (index === 2 ? forever : undefined) }),
    );
    expect(text).toBe(EVENTS.slice(0, 2).join("") + ERROR_EVENT);
    expect(ending).toMatchObject({ kind: "timeout", phase: "between_chunks" });
    expect(endingCount).toBe(1);
    await within("the backend's connection is given up", backend.lastRequest.closed);
  });

  test("comments are signs of life", async () => {
    limits = { ...limits, betweenChunksMs: 1_000 };
    const comments = Array<string>(12).fill(": ping\n\n");
    const events = [EVENTS[0] as string, ...comments, ...EVENTS.slice(1)];
    const { text, ending } = await relayed(eventStream(events, { betweenChunksMs: 100 }));
    expect(text).toBe(events.join(""));
    expect(ending).toBeUndefined();
  });

  test("the limit of the request holds for a stream that never falls silent", async () => {
    limits = { ...limits, requestMs: 200 };
    const events = [EVENTS[0] as string, ...Array<string>(2_000).fill(EVENTS[1] as string)];
    const { text, ending } = await relayed(eventStream(events, { betweenChunksMs: 10 }));
    expect(text).toEndWith(ERROR_EVENT);
    expect(ending).toMatchObject({ kind: "timeout", phase: "request" });
    await within("the backend's connection is given up", backend.lastRequest.closed);
  });
});

describe("a client that leaves", () => {
  test("ends the exchange at once, once, and nobody is blamed", async () => {
    const forever = new Promise<void>(() => {});
    backend.answer = eventStream(EVENTS, { beforeChunk: (index) => (index === 1 ? forever : undefined) });
    const client = new AbortController();
    const reader = (await ask(client.signal)).body?.getReader() as ByteReader;
    await within("the stream begins", readUntil(reader, "assistant"));
    expect(entry.counters.inFlight).toBe(1);
    client.abort();
    await within("the backend's connection is given up", backend.lastRequest.closed);
    await waitFor("the exchange is released", () => entry.counters.inFlight === 0);
    await waitFor("the relay is told", () => endings.length > 0);
    expect(endings).toEqual([{ kind: "aborted" }]);
  });
});

describe("a client that reads slowly", () => {
  const PIECES = 400;
  const piece = sseEvent({ choices: [{ index: 0, delta: { content: "x".repeat(256 * 1024) }, finish_reason: null }] });

  /** A client that sends its request and reads nothing of what follows its first bytes. */
  async function stalledClient() {
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port: gateway.port as number,
      socket: { data: (paused) => void paused.pause(), drain() {}, error() {} },
    });
    socket.write("POST / HTTP/1.1\r\nHost: gateway\r\nContent-Length: 2\r\n\r\n{}");
    return socket;
  }

  /** Resolves with the count when the backend was not asked for a further piece for a while. */
  async function settledCount(count: () => number): Promise<number> {
    let last = -1;
    let since = now();
    return waitFor("the backend is held back", () => {
      if (count() !== last) {
        last = count();
        since = now();
      }
      return last > 0 && now() - since > 300 ? last : undefined;
    });
  }

  test("holds the backend back instead of filling the memory, and gets every byte when it reads on", async () => {
    let written = 0;
    const events = [...Array<string>(PIECES).fill(piece), "data: [DONE]\n\n"];
    backend.answer = eventStream(events, {
      beforeChunk: (index) => {
        written = index;
        return undefined;
      },
    });
    limits = { ...limits, betweenChunksMs: 200 };
    const reader = (await ask()).body?.getReader() as unknown as ByteReader;
    let bytes = (await reader.read()).value?.length ?? 0;
    // A hundred megabytes are offered; buffers of sockets and of both runtimes hold a few.
    expect(await settledCount(() => written)).toBeLessThan(PIECES / 2);
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      bytes += value?.length ?? 0;
    }
    expect(bytes).toBe(Buffer.byteLength(events.join("")));
    await waitFor("the relay is told", () => endings.length > 0);
    expect(endings).toEqual([undefined]);
  }, 30_000);

  test("is let go when the request's time is over", async () => {
    limits = { ...limits, requestMs: 1_000 };
    backend.answer = eventStream(Array<string>(PIECES).fill(piece));
    const client = await stalledClient();
    try {
      await waitFor("the backend has the request", () => backend.requests.length === 1);
      await within("the backend's connection is given up", backend.lastRequest.closed);
      await waitFor("the exchange is released", () => entry.counters.inFlight === 0);
      expect(endings).toEqual([expect.objectContaining({ kind: "timeout", phase: "request" })]);
    } finally {
      client.terminate();
    }
  }, 20_000);

  test("and leaves: the exchange is released although a write never settles", async () => {
    backend.answer = eventStream(Array<string>(PIECES).fill(piece));
    const client = await stalledClient();
    await waitFor("the backend has the request", () => backend.requests.length === 1);
    await Bun.sleep(100);
    client.terminate();
    await waitFor("the exchange is released", () => entry.counters.inFlight === 0);
    await within("the backend's connection is given up", backend.lastRequest.closed);
    expect(endings).toEqual([{ kind: "aborted" }]);
  }, 20_000);
});

test("the end of a broken stream is an orderly one for HTTP, so that the error event is read", async () => {
  const first = Buffer.byteLength(EVENTS[0] as string);
  const { answer, clientSaw } = heldBack(EVENTS, 1, { breakAfterBytes: first, breakWith: "reset" });
  backend.answer = answer;
  const connection = await RawConnection.open(gateway.port as number);
  connection.write("POST / HTTP/1.1\r\nHost: gateway\r\nContent-Length: 2\r\n\r\n{}");
  await waitFor("the first event arrives", () => connection.received.includes("assistant"));
  clientSaw(first);
  const response = await connection.response();
  expect(response.text).toBe(EVENTS[0] + ERROR_EVENT);
});

describe("another backend takes over", () => {
  const TEXTS = ["Grüße", " 🚂", " ]}", "!"];
  const events = chatEvents(TEXTS);
  const secondEvents = chatEvents(TEXTS, { model: "two" }).map((event) => event.replace("chatcmpl-1", "chatcmpl-2"));
  const told = 'data: {"error":{"message":"cuda out of memory","code":500}}\n\n';
  const tool = (delta: Record<string, unknown>) =>
    sseEvent({ id: "chatcmpl-1", choices: [{ index: 0, delta, finish_reason: null }] });

  interface Part {
    id: string;
    choices: { delta: { role?: string; content?: string }; finish_reason: string | null }[];
  }

  /** One answer as a client understands it. */
  function answerIn(data: readonly string[]) {
    const parts = data.filter((each) => each !== "[DONE]").map((each) => JSON.parse(each) as Part);
    const chunks = parts.flatMap((part) => part.choices);
    return {
      ids: [...new Set(parts.map((part) => part.id))],
      roles: chunks.flatMap((choice) => choice.delta.role ?? []),
      text: chunks.map((choice) => choice.delta.content ?? "").join(""),
      finishes: chunks.flatMap((choice) => choice.finish_reason ?? []),
      isDone: data.at(-1) === "[DONE]",
    };
  }

  const WHOLE = { ids: ["chatcmpl-1"], roles: ["assistant"], text: TEXTS.join(""), finishes: ["stop"], isDone: true };
  const kinds = (list: readonly (UpstreamFailure | undefined)[]) => list.map((failure) => failure?.kind);

  /** The first backend breaks when the client has so many of its events. */
  function cutAfter(count: number, of: readonly string[] = events) {
    const before = Buffer.byteLength(of.slice(0, count).join(""));
    return heldBack([...of, "data: never\n\n"], count, { breakAfterBytes: before, breakWith: "reset" });
  }

  function succeed(...answers: Answer[]) {
    answers.forEach((answer, index) => {
      others[index]!.backend.answer = answer;
    });
    successors = answers.map((_, index) => others[index]!.entry);
  }

  for (let count = 1; count <= TEXTS.length + 1; count++) {
    test(`cut after ${count} events: one answer, whole`, async () => {
      succeed(eventStream(secondEvents));
      const { answer, clientSaw } = cutAfter(count);
      const { data, endingCount } = await relayed(answer, clientSaw);
      expect(answerIn(data)).toEqual(WHOLE);
      expect(kinds(liveEndings)).toEqual(["reset", undefined]);
      expect({ endingCount, endings }).toEqual({ endingCount: 1, endings: [undefined] });
      expect(others[0]!.backend.requests.length).toBe(1);
    });
  }

  test("a finished answer that lacks only its marker is not asked for again", async () => {
    succeed(eventStream(secondEvents));
    const { text } = await relayed(eventStream(events.slice(0, -1)));
    expect(text).toBe(events.join(""));
    expect({ searches, liveEndings }).toEqual({ searches: [], liveEndings: [undefined] });
  });

  test.each([
    ["alone", [told]],
    ["in one piece with text before it", []],
    ["followed by the marker", [`${told}data: [DONE]\n\n`]],
  ])("after an error event, which the client never sees: %s", async (_title, behind) => {
    succeed(eventStream(secondEvents));
    const start = events.slice(0, 3);
    const pieces = behind.length === 0 ? [start[0] as string, `${start[1]}${start[2]}${told}`] : [...start, ...behind];
    const { data, text } = await relayed(eventStream(pieces));
    expect(text).not.toContain("cuda");
    expect(answerIn(data)).toEqual(WHOLE);
    expect(kinds(liveEndings)).toEqual(["status", undefined]);
    expect(endings).toEqual([undefined]);
  });

  test("after an error event that lacks its empty line", async () => {
    succeed(eventStream(secondEvents));
    const { data, text } = await relayed(eventStream([...events.slice(0, 3), told.slice(0, -1)]));
    expect(text).not.toContain("cuda");
    expect(answerIn(data)).toEqual(WHOLE);
  });

  test("nobody does: the error event is seen as it came, once, behind all text", async () => {
    succeed();
    const { text, ending } = await relayed(eventStream([events[0] as string, `${events[1]}${told}`]));
    expect(text).toBe(`${events[0]}${events[1]}${told}`);
    expect(ending).toEqual({ kind: "told-in-stream" });
    expect(kinds(liveEndings)).toEqual(["status"]);
  });

  test("nobody does: a cut stream ends with the gateway's error", async () => {
    succeed();
    const { answer, clientSaw } = cutAfter(3);
    const { text, ending } = await relayed(answer, clientSaw);
    expect(text).toBe(events.slice(0, 3).join("") + ERROR_EVENT);
    expect({ kind: ending?.kind, searches: kinds(searches) }).toEqual({ kind: "reset", searches: ["reset"] });
  });

  test("after a silence", async () => {
    limits = { ...limits, betweenChunksMs: 150 };
    succeed(eventStream(secondEvents));
    const forever = new Promise<void>(() => {});
    const silent = eventStream(events, { beforeChunk: (index) => (index === 3 ? forever : undefined) });
    const { data } = await relayed(silent);
    expect(answerIn(data)).toEqual(WHOLE);
    expect(kinds(liveEndings)).toEqual(["timeout", undefined]);
    await within("the silent backend's connection is given up", backend.lastRequest.closed);
  });

  test("and another one after that", async () => {
    const third = chatEvents([TEXTS.join("")]).map((event) => event.replace("chatcmpl-1", "chatcmpl-3"));
    succeed(eventStream([...secondEvents.slice(0, 4), told]), eventStream(third));
    const { answer, clientSaw } = cutAfter(2);
    const { data, endingCount } = await relayed(answer, clientSaw);
    expect(answerIn(data)).toEqual(WHOLE);
    expect(kinds(liveEndings)).toEqual(["reset", "status", undefined]);
    expect(endingCount).toBe(1);
  });

  test("cannot, when a tool call was begun", async () => {
    succeed(eventStream(secondEvents));
    const begun = [
      events[0] as string,
      tool({ tool_calls: [{ index: 0, id: "t", function: { name: "f", arguments: '{"a' } }] }),
    ];
    const { answer, clientSaw } = cutAfter(2, begun);
    const { text, ending } = await relayed(answer, clientSaw);
    expect(text).toBe(begun.join("") + ERROR_EVENT);
    expect(ending?.kind).toBe("reset");
    expect(others[0]!.backend.requests.length).toBe(0);
  });

  test("cannot, when all streams together have no room for what was sent; what was taken is given back", async () => {
    const room = Buffer.byteLength(events.slice(0, 2).join(""));
    transcripts = new ByteAllowance(room);
    succeed(eventStream(secondEvents));
    const { answer, clientSaw } = cutAfter(3);
    const { endingCount } = await relayed(answer, clientSaw);
    expect({ endingCount, searches }).toEqual({ endingCount: 1, searches: [] });
    expect(transcripts.take(room)).toBeTrue();
  });

  test("a search that fails ends the stream with an error, once", async () => {
    succeed({ status: 500 });
    const { answer, clientSaw } = cutAfter(2);
    const { text, endingCount } = await relayed(answer, clientSaw);
    expect(text).toBe(events.slice(0, 2).join("") + ERROR_EVENT);
    expect(endingCount).toBe(1);
  });

  test("the client leaves during the search: everything is freed, once", async () => {
    const forever = new Promise<void>(() => {});
    succeed(eventStream(secondEvents, { beforeChunk: (index) => (index === 2 ? forever : undefined) }));
    const searching = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    beforeTakeover = () => {
      searching.resolve();
      return gate.promise;
    };
    backend.answer = eventStream([...events.slice(0, 3), told]);
    const client = new AbortController();
    const reader = (await ask(client.signal)).body?.getReader() as ByteReader;
    await within("the stream begins", readUntil(reader, "🚂"));
    await within("a successor is found", searching.promise);
    expect(others[0]!.entry.counters.inFlight).toBe(1);
    client.abort();
    await waitFor("the relay is told", () => endings.length > 0);
    gate.resolve();
    await waitFor("the successor is released", () => others[0]!.entry.counters.inFlight === 0);
    await within("its connection is given up", others[0]!.backend.lastRequest.closed);
    expect(kinds(liveEndings)).toEqual(["status", "aborted"]);
    expect(endings).toEqual([{ kind: "aborted" }]);
  });
});
