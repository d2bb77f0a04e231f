// One exchange: its place in the count, its deadlines by phase, and who ended it.

import { describe, expect, test } from "bun:test";
import { newCounters, toBackend } from "../backends/backend.ts";
import type { BackendEntry } from "../backends/board.ts";
import { documentSchema } from "../config/sections/registry.ts";
import type { Deadline } from "../lib/deadlines.ts";
import { CLIENT_LOOK_MS, Exchange, type ExchangeTimeouts } from "./exchange.ts";
import type { UpstreamFailure } from "./failure.ts";

const TIMEOUTS: ExchangeTimeouts = {
  connectMs: 1_000,
  firstByteMs: 10_000,
  betweenChunksMs: 2_000,
  requestDeadlineMs: 60_000,
};

/** An exchange that begins at time 0, on a clock that is set by hand. */
function bench(more: Partial<ExchangeTimeouts> = {}, options: { reachable?: boolean; aborted?: boolean } = {}) {
  let nowMs = 0;
  let entered = 0;
  const watched = new Set<Deadline>();
  const settings = documentSchema.parse({ backends: [{ name: "b1", url: "http://h" }] });
  const entry: BackendEntry = {
    backend: toBackend(settings.backends[0]!),
    health: "ready",
    available: true,
    counters: newCounters(),
  };
  const checks: number[] = [];
  let isClosed = false;
  const client = new AbortController();
  if (options.aborted) client.abort();
  const exchange = new Exchange(
    entry,
    client,
    { ...TIMEOUTS, ...more },
    {
      now: () => nowMs,
      deadlines: {
        add: (deadline) => {
          entered++;
          watched.add(deadline);
        },
        remove: (deadline) => void watched.delete(deadline),
        get size() {
          return watched.size;
        },
      },
    },
  );
  exchange.begin({
    answer: new Promise(() => {}),
    abort: () => {
      isClosed = true;
    },
    connects: async (withinMs) => {
      checks.push(withinMs);
      return options.reachable ?? true;
    },
  });
  return {
    exchange,
    counters: entry.counters,
    client,
    checks,
    watched,
    entered: () => entered,
    /** Whether the connection was given up. */
    isClosed: () => isClosed,
    /** Moves the clock, expires the exchange when its deadline has passed, and lets promises settle. */
    async moveTo(ms: number) {
      nowMs = ms;
      if (watched.has(exchange) && exchange.deadlineMs <= nowMs) {
        watched.delete(exchange);
        exchange.expire();
      }
      await Bun.sleep(0);
    },
    failure: (): UpstreamFailure => exchange.failureOf(new Error("thrown by fetch")),
  };
}

describe("its place in the count", () => {
  test("is taken at once and given back exactly once", () => {
    const { exchange, counters, watched } = bench();
    expect(counters.inFlight).toBe(1);
    expect(watched.size).toBe(1);
    exchange.release();
    exchange.release();
    expect(counters.inFlight).toBe(0);
    expect(watched.size).toBe(0);
  });

  test("is given back by release only: ending the exchange leaves it until then", () => {
    const { exchange, counters, client } = bench();
    client.abort();
    exchange.abort();
    expect(counters.inFlight).toBe(1);
    exchange.release();
    expect(counters.inFlight).toBe(0);
  });
});

describe("the client", () => {
  test("leaves: the backend's connection is closed, and that is how the failure reads", async () => {
    const { client, moveTo, failure, isClosed } = bench();
    await moveTo(CLIENT_LOOK_MS);
    expect(isClosed()).toBe(false);
    client.abort();
    expect(isClosed()).toBe(true);
    expect(failure()).toEqual({ kind: "aborted" });
  });

  test("leaves at once, or had left before: that is seen at the first look, whatever has come until then", async () => {
    for (const come of [[], ["headReceived"], ["headReceived", "chunkReceived"], ["headReceived", "pause"]] as const) {
      const { exchange, moveTo, failure, isClosed } = bench({}, { aborted: true });
      for (const event of come) exchange[event]();
      expect(isClosed()).toBe(false);
      await moveTo(CLIENT_LOOK_MS);
      expect(isClosed()).toBe(true);
      expect(failure()).toEqual({ kind: "aborted" });
    }
  });

  test("leaves after the release: that is not counted again", () => {
    const { exchange, client, counters } = bench();
    exchange.release();
    client.abort();
    exchange.release();
    expect(counters.inFlight).toBe(0);
  });
});

describe("the backend is taken out of service, and its time to finish passes", () => {
  test("the connection is closed, and it reads as a failure of the backend", () => {
    const { exchange, counters, failure, isClosed } = bench();
    expect(counters.running).toEqual([exchange]);
    exchange.cut();
    expect(isClosed()).toBe(true);
    expect(failure()).toMatchObject({ kind: "reset", message: expect.stringContaining("'b1'") });
    exchange.release();
    expect(counters.running.length).toBe(0);
  });

  test("a client that left before stays the reason", () => {
    const { exchange, client, failure } = bench();
    client.abort();
    exchange.cut();
    expect(failure()).toEqual({ kind: "aborted" });
  });

  test("a deadline that passes afterwards does not", async () => {
    const { exchange, moveTo, failure } = bench();
    exchange.headReceived();
    exchange.cut();
    await moveTo(10_000);
    expect(failure().kind).toBe("reset");
  });

  test("the last release tells it, once", () => {
    const { exchange, counters } = bench();
    let calls = 0;
    counters.onIdle = () => calls++;
    exchange.release();
    exchange.release();
    expect(calls).toBe(1);
  });

  test("another release does not", () => {
    const { exchange, counters } = bench();
    let calls = 0;
    counters.onIdle = () => calls++;
    counters.inFlight++;
    exchange.release();
    expect(calls).toBe(0);
  });
});

describe("deadlines", () => {
  function timeout(failure: UpstreamFailure): string {
    if (failure.kind !== "timeout") return failure.kind;
    expect(failure.message).toContain("'b1'");
    expect(failure.message).toContain(`timeouts.${failure.phase}`);
    return failure.phase;
  }

  test("no connection: half of the time is waited, the other half spent on asking whether there is a host", async () => {
    const { moveTo, checks, failure, isClosed } = bench({}, { reachable: false });
    await moveTo(499);
    expect(checks).toEqual([]);
    await moveTo(500);
    expect(checks).toEqual([500]);
    expect(isClosed()).toBe(true);
    expect(timeout(failure())).toBe("connect");
    expect((failure() as { message: string }).message).toContain("1000 ms");
  });

  test("a host that is there may think until the first byte is due", async () => {
    const { moveTo, failure, entered, isClosed } = bench();
    await moveTo(500);
    await moveTo(9_999);
    expect(isClosed()).toBe(false);
    expect(entered()).toBe(3);
    await moveTo(10_000);
    expect(isClosed()).toBe(true);
    expect(timeout(failure())).toBe("first_byte");
  });

  test("a head alone is no first byte: it moves no deadline", async () => {
    const { exchange, moveTo, failure, checks, isClosed } = bench();
    await moveTo(400);
    exchange.headReceived();
    await moveTo(9_999);
    expect(isClosed()).toBe(false);
    expect(checks).toEqual([]);
    await moveTo(10_000);
    expect(timeout(failure())).toBe("first_byte");
  });

  test("a host that turns out to be away after the answer has begun changes nothing", async () => {
    const { exchange, moveTo, isClosed } = bench({}, { reachable: false });
    const moved = moveTo(500);
    exchange.headReceived();
    exchange.chunkReceived();
    await moved;
    expect(isClosed()).toBe(false);
  });

  test("each chunk may be followed by a silence of its own", async () => {
    const { exchange, moveTo, failure, isClosed } = bench();
    exchange.headReceived();
    for (const ms of [1_000, 2_500, 4_499]) {
      await moveTo(ms);
      exchange.chunkReceived();
    }
    await moveTo(6_498);
    expect(isClosed()).toBe(false);
    await moveTo(6_499);
    expect(timeout(failure())).toBe("between_chunks");
  });

  test("while the client is slow only the request's own deadline counts", async () => {
    const { exchange, moveTo, failure, isClosed } = bench();
    exchange.headReceived();
    exchange.chunkReceived();
    exchange.pause();
    await moveTo(59_999);
    expect(isClosed()).toBe(false);
    await moveTo(60_000);
    expect(timeout(failure())).toBe("request");
  });

  test.each([
    ["before the connection stands", (_exchange: Exchange) => {}],
    ["before the first byte", (exchange: Exchange) => exchange.headReceived()],
    ["between chunks", (exchange: Exchange) => exchange.chunkReceived()],
  ] as const)("the request's deadline comes before any longer one: %s", async (_title, reach) => {
    const { exchange, moveTo, failure, isClosed } = bench({ requestDeadlineMs: 300 });
    reach(exchange);
    await moveTo(299);
    expect(isClosed()).toBe(false);
    await moveTo(300);
    expect(isClosed()).toBe(true);
    expect(timeout(failure())).toBe("request");
  });

  test("a first byte that is due before the connection is told as such", async () => {
    const { moveTo, failure } = bench({ firstByteMs: 300 });
    await moveTo(500);
    expect(timeout(failure())).toBe("first_byte");
  });

  test("after the release nothing expires", async () => {
    const { exchange, failure, isClosed } = bench();
    exchange.release();
    exchange.expire();
    expect(isClosed()).toBe(false);
    expect(failure().kind).toBe("reset");
  });

  test("a timeout is told as one even when the client leaves right after it", async () => {
    const { exchange, moveTo, client, failure } = bench();
    exchange.headReceived();
    await moveTo(10_000);
    client.abort();
    expect(timeout(failure())).toBe("first_byte");
  });
});
