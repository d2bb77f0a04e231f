// Requests that share a call: who joins, what each of them sees, and when the call ends.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { keptAnswers } from "../protocols/registry.ts";
import type { UpstreamFailure } from "../upstream/failure.ts";
import type { ByteSink } from "../upstream/relay.ts";
import {
  Deduplicator,
  flightKey,
  HIGH_WATER_BYTES,
  isSharable,
  type Joined,
  type SharedAnswer,
} from "./deduplicate.ts";

const encoder = new TextEncoder();

const RESET: UpstreamFailure = { kind: "reset", message: "broken" };

interface Call {
  signal: AbortSignal;
  aborts: number;
  answer(): void;
  plain(): void;
  reject(error: Error): void;
  sink: ByteSink | undefined;
}

function bench(options: { maxBufferBytes?: number; maxTotalBytes?: number; ttlMs?: number } = {}) {
  const state = { nowMs: 0 };
  const deduplicator = new Deduplicator<string>(() => state.nowMs, options.maxBufferBytes, options.maxTotalBytes);
  const calls: Call[] = [];
  function join(key = "k") {
    const controller = new AbortController();
    const ends: (UpstreamFailure | undefined)[] = [];
    const joined: Promise<Joined<string> | undefined> = deduplicator.join({
      key,
      ttlMs: options.ttlMs ?? 60_000,
      signal: controller.signal,
      start(signal) {
        const { promise, resolve, reject } = Promise.withResolvers<SharedAnswer<string>>();
        const call: Call = {
          signal,
          aborts: 0,
          sink: undefined,
          answer: () => {
            const feed = (sink: ByteSink) => {
              call.sink = sink;
            };
            resolve({ head: "stream", feed });
          },
          plain: () => resolve({ head: "plain" }),
          reject,
        };
        signal.addEventListener("abort", () => call.aborts++);
        calls.push(call);
        return promise;
      },
      lastWords: ({ kind }) => encoder.encode(kind === "reset" ? "<failed reset>" : "<lagged>"),
      finished: (end) => void ends.push(end),
    });
    return { joined, ends, leave: () => controller.abort() };
  }
  return { state, deduplicator, calls, join };
}

async function bodyOf(joined: Promise<Joined<string> | undefined>): Promise<ReadableStream<Uint8Array>> {
  const result = await joined;
  if (result?.body === undefined) throw new Error("no stream");
  return result.body;
}

async function textOf(joined: Promise<Joined<string> | undefined>): Promise<string> {
  return await new Response(await bodyOf(joined)).text();
}

describe("which requests share", () => {
  test.each([
    ["deterministic", { temperature: 0 }, null, true],
    ["deterministic", {}, null, false],
    ["deterministic", { temperature: 1 }, null, false],
    ["deterministic", { temperature: 1 }, "i", true],
    ["deterministic", {}, "", false],
    ["all", { temperature: 1 }, null, true],
    ["all", { store: true }, null, false],
    ["off", { temperature: 0 }, "i", false],
  ] as const)("%s %p %p: %p", (mode, body, idempotencyKey, expected) => {
    expect(isSharable(mode, keptAnswers("chat"), body, idempotencyKey)).toBe(expected);
  });

  test("questions, forms, callers and Idempotency-Keys are told apart", () => {
    const key = { question: "q", form: "plain" } as const;
    const keys = [
      flightKey(key, undefined, null),
      flightKey(key, "a", null),
      flightKey(key, "a", "i"),
      flightKey(key, undefined, "i"),
      flightKey({ ...key, form: "stream" }, undefined, null),
      flightKey({ ...key, question: "r" }, undefined, null),
    ];
    expect(new Set(keys).size).toBe(keys.length);
  });
});

describe("plain answers", () => {
  test("are shared while in flight, not after", async () => {
    const { calls, join, deduplicator } = bench();
    const [first, second] = [join(), join()];
    join("other").leave();
    calls[0]?.plain();
    expect(await first.joined).toEqual({ head: "plain", isLeader: true, body: undefined });
    expect(await second.joined).toMatchObject({ head: "plain", isLeader: false });
    expect(calls.length).toBe(2);
    expect(deduplicator.flights.size).toBe(0);
    expect(calls[0]?.aborts).toBe(0);
    expect(calls[1]?.aborts).toBe(1);
    join();
    expect(calls.length).toBe(3);
  });

  test("an error reaches all", async () => {
    const { calls, join } = bench();
    const [first, second] = [join(), join()];
    calls[0]?.reject(new Error("none"));
    const results = await Promise.allSettled([first.joined, second.joined]);
    expect(results.map((result) => result.status === "rejected" && result.reason.message)).toEqual(["none", "none"]);
    join();
    expect(calls.length).toBe(2);
  });

  test("the leader may leave before the answer; the last who leaves ends the call", async () => {
    const { calls, join } = bench();
    const [first, second, third] = [join(), join(), join()];
    first.leave();
    expect(await first.joined).toBeUndefined();
    second.leave();
    expect(calls[0]?.aborts).toBe(0);
    third.leave();
    expect(calls[0]?.aborts).toBe(1);
    join();
    expect(calls.length).toBe(2);
  });
});

describe("streams", () => {
  test("a late client sees everything from the first byte", async () => {
    const { calls, join, deduplicator } = bench();
    const first = join();
    calls[0]?.answer();
    const firstText = textOf(first.joined);
    await Bun.sleep(0);
    await calls[0]?.sink?.write(encoder.encode("one "));
    const second = join();
    const secondText = textOf(second.joined);
    await calls[0]?.sink?.write(encoder.encode("two"));
    calls[0]?.sink?.close();
    expect(await Promise.all([firstText, secondText])).toEqual(["one two", "one two"]);
    expect([first.ends, second.ends]).toEqual([[undefined], [undefined]]);
    expect(calls.length).toBe(1);
    expect(calls[0]?.aborts).toBe(0);
    expect(deduplicator.heldBytes).toBe(0);
  });

  test("a failure reaches all, behind what was sent", async () => {
    const { calls, join } = bench();
    const clients = [join(), join()];
    calls[0]?.answer();
    const texts = clients.map(({ joined }) => textOf(joined));
    await Bun.sleep(0);
    await calls[0]?.sink?.write(encoder.encode("one "));
    calls[0]?.sink?.fail(RESET, undefined);
    expect(await Promise.all(texts)).toEqual(["one <failed reset>", "one <failed reset>"]);
    expect(clients[0]?.ends).toEqual([RESET]);
  });

  test("nobody joins after the ttl, or when the beginning is gone", async () => {
    const { calls, join, state, deduplicator } = bench({ ttlMs: 100, maxBufferBytes: 1_000 });
    const first = join();
    calls[0]?.answer();
    void textOf(first.joined);
    await Bun.sleep(0);
    state.nowMs = 99;
    join();
    expect(calls.length).toBe(1);
    state.nowMs = 100;
    join();
    expect(calls.length).toBe(2);
    calls[1]?.answer();
    await Bun.sleep(0);
    await calls[1]?.sink?.write(new Uint8Array(600));
    expect(deduplicator.flights.size).toBe(0);
    join();
    expect(calls.length).toBe(3);
  });

  test("a slow client is ended when it is too far behind, and holds nobody up", async () => {
    const { calls, join, deduplicator } = bench({ maxBufferBytes: 500_000 });
    const [fast, slow] = [join(), join()];
    calls[0]?.answer();
    const fastText = textOf(fast.joined);
    const reader = (await bodyOf(slow.joined)).getReader();
    const firstRead = reader.read();
    await calls[0]?.sink?.write(encoder.encode("first "));
    await firstRead;
    for (let index = 0; index < 100; index++) {
      await calls[0]?.sink?.write(new Uint8Array(10_000).fill(97));
      await Bun.sleep(0);
      expect(deduplicator.heldBytes).toBeLessThanOrEqual(520_000);
    }
    calls[0]?.sink?.close();
    expect((await fastText).length).toBe(1_000_006);
    expect(slow.ends.map((failure) => failure?.kind)).toEqual(["invalid-response"]);
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      rest += new TextDecoder().decode(value);
    }
    expect(rest.endsWith("a<lagged>")).toBe(true);
  });

  test("when every client is slow, the call waits", async () => {
    const { calls, join } = bench();
    const first = join();
    calls[0]?.answer();
    const reader = (await bodyOf(first.joined)).getReader();
    let written = 0;
    let waiting: Promise<unknown> | undefined;
    while (waiting === undefined && written < 100) {
      const result = calls[0]?.sink?.write(new Uint8Array(HIGH_WATER_BYTES));
      await Bun.sleep(0);
      if (typeof result !== "number" && (await Promise.race([result, Bun.sleep(5).then(() => "slow")])) === "slow") {
        waiting = result;
      }
      written++;
    }
    expect(written).toBeLessThan(5);
    void (async () => {
      while (!(await reader.read()).done);
    })();
    await waiting;
    expect(first.ends).toEqual([]);
  });

  test("leaving by the signal and by the body counts once", async () => {
    const { calls, join } = bench();
    const first = join();
    calls[0]?.answer();
    const reader = (await bodyOf(first.joined)).getReader();
    const reading = reader.read();
    await calls[0]?.sink?.write(encoder.encode("x"));
    await reading;
    await reader.cancel();
    first.leave();
    await Bun.sleep(0);
    expect(first.ends).toEqual([{ kind: "aborted" }]);
    expect(calls[0]?.aborts).toBe(1);
  });
});

test("whoever joins and leaves at any moment: the same bytes for all who stay, one abort after the last", async () => {
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant("write" as const), size: fc.integer({ min: 1, max: 20_000 }) }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("join" as const) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("leave" as const), who: fc.nat(9), how: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("turn" as const) }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.boolean(), fc.nat(10), async (steps, fails, answerAt) => {
      const { calls, join, deduplicator } = bench();
      const clients: {
        ends: (UpstreamFailure | undefined)[];
        leave(byBody: boolean): void;
        text: Promise<string | undefined>;
        left: boolean;
      }[] = [];
      function add(): void {
        const client = join();
        let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
        const text = (async () => {
          const result = await client.joined;
          if (result?.body === undefined) return undefined;
          reader = result.body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
          let seen = "";
          for (;;) {
            const { done, value } = await reader.read();
            if (done) return seen;
            seen += new TextDecoder().decode(value);
          }
        })().catch(() => undefined);
        const entry = {
          ends: client.ends,
          text,
          left: false,
          leave(byBody: boolean) {
            entry.left = true;
            if (byBody && reader !== undefined) void reader.cancel();
            else client.leave();
          },
        };
        clients.push(entry);
      }
      add();
      let sent = "";
      let letter = 0;
      for (const [index, next] of steps.entries()) {
        if (index === answerAt) calls[0]?.answer();
        if (next.kind === "join" && calls[0]?.aborts === 0) add();
        else if (next.kind === "leave") {
          const client = clients[next.who % clients.length];
          if (client?.left === false) client.leave(next.how);
        } else if (next.kind === "turn") await Bun.sleep(0);
        else if (next.kind === "write" && calls[0]?.sink !== undefined && calls[0].aborts === 0) {
          const text = String.fromCharCode(97 + (letter++ % 26)).repeat(next.size);
          sent += text;
          await calls[0].sink.write(encoder.encode(text));
        }
        const allLeft = clients.every(({ left }) => left);
        expect(calls[0]?.aborts).toBe(allLeft ? 1 : 0);
      }
      calls[0]?.answer();
      await Bun.sleep(0);
      if (fails) calls[0]?.sink?.fail(RESET, undefined);
      else calls[0]?.sink?.close();
      for (const { text, left, ends } of clients) {
        if (left) {
          expect(ends.length).toBeLessThanOrEqual(1);
          continue;
        }
        expect(await text).toBe(fails ? `${sent}<failed reset>` : sent);
        expect(ends).toEqual([fails ? RESET : undefined]);
      }
      expect(calls.length).toBe(1);
      expect(calls[0]?.aborts).toBe(clients.every(({ left }) => left) ? 1 : 0);
      expect([deduplicator.flights.size, deduplicator.heldBytes]).toEqual([0, 0]);
    }),
    { numRuns: 200 },
  );
}, 20_000);
