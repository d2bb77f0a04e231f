// Who is limited by what, and that neither schedules nor strangers win more than the limits allow.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { rateLimitingSection } from "../config/sections/rate-limiting.ts";
import type { LimitQuery } from "./limit-rules.ts";
import { createLimiter, type LimiterParts } from "./limiter.ts";

const EPOCH_MS = 1_900_000_000_000;

function limiterWith(
  settings: Parameters<typeof rateLimitingSection.schema.parse>[0],
  more: Partial<LimiterParts> = {},
) {
  const clock = { nowMs: 0 };
  const limiter = createLimiter({
    settings: rateLimitingSection.schema.parse(settings),
    now: () => clock.nowMs,
    wallTime: () => EPOCH_MS + clock.nowMs,
    ...more,
  });
  return { clock, limiter };
}

const rate = (requests_per_second: number, burst_capacity: number) => ({ requests_per_second, burst_capacity });
const WIDE = rate(1000, 1000);

function query(clientAddress: string | undefined, more: Partial<LimitQuery> = {}): LimitQuery {
  return { clientAddress, keyId: undefined, key: undefined, ...more };
}

describe("limiter", () => {
  test.each([{}, { limits: { global: rate(1, 1) }, bypass_keys: ["12345678"] }])(
    "disabled, it does nothing",
    (settings) => {
      const { limiter } = limiterWith(settings);
      expect(limiter).toMatchObject({ limitsRequests: false, limitsBackends: false, size: 0 });
      for (let count = 0; count < 100; count++) {
        expect(limiter.take(query("192.0.2.1"))).toBeUndefined();
        expect(limiter.takeBackend("a") && limiter.backendHasRoom("a")).toBe(true);
      }
      expect(limiter.backendRefusal(["a"])).toBeUndefined();
    },
  );

  test("each client has its own bucket, IPv6 clients one for their /64", () => {
    const { limiter, clock } = limiterWith({ enabled: true, limits: { per_client: rate(1, 2) } });
    const allowed = (address: string | undefined) => limiter.take(query(address))?.allowed;
    expect(["a", "b", "c"].map(() => allowed("192.0.2.1"))).toEqual([true, true, false]);
    expect(allowed("192.0.2.2")).toBe(true);
    expect(["2600::1", "2600::2", "2600::3"].map(allowed)).toEqual([true, true, false]);
    expect(allowed("2600:0:0:1::1")).toBe(true);
    expect([undefined, undefined, undefined].map(allowed)).toEqual([true, true, false]);
    clock.nowMs = 1000;
    expect(allowed("192.0.2.1")).toBe(true);
    expect(allowed("192.0.2.1")).toBe(false);
  });

  test("each caller has its own limit, which changes with it", () => {
    const settings = { enabled: true, limits: { per_client: WIDE, per_api_key: rate(1, 1), global: WIDE } };
    const of = (more: Partial<LimiterParts> = {}) => limiterWith(settings, more).limiter;
    const limiter = of();
    const asked = (by: typeof limiter, keyId: string, perMinute?: number) => {
      const decision = by.take(query("192.0.2.1", { keyId, perMinute }));
      return [decision?.allowed, decision?.limit];
    };
    expect(["a", "a", "a", "b"].map((keyId) => asked(limiter, keyId, 2))).toEqual([
      [true, 2],
      [true, 2],
      [false, 2],
      [true, 2],
    ]);
    expect(["c", "c"].map((keyId) => asked(limiter, keyId)[0])).toEqual([true, false]);
    limiter.putBack(query("192.0.2.1", { keyId: "a", perMinute: 2 }));
    const next = of({ previous: limiter });
    expect(["a", "a", "n"].map((keyId) => asked(next, keyId, 9))).toEqual([
      [true, 9],
      [false, 9],
      [true, 9],
    ]);
  });

  test("what a decision says", () => {
    const { limiter, clock } = limiterWith({ enabled: true, limits: { per_client: rate(2, 3) } });
    expect(limiter.take(query("192.0.2.1"))).toEqual({
      allowed: true,
      scope: "client",
      limit: 3,
      windowMs: 1500,
      remaining: 2,
      retryAfterMs: 0,
      resetAtMs: EPOCH_MS + 500,
    });
    limiter.take(query("192.0.2.1"));
    limiter.take(query("192.0.2.1"));
    clock.nowMs = 100;
    expect(limiter.take(query("192.0.2.1"))).toMatchObject({
      allowed: false,
      remaining: 0,
      retryAfterMs: 400,
      resetAtMs: EPOCH_MS + 1500,
    });
  });

  test("the limit that speaks: client, key or all together", () => {
    const { limiter } = limiterWith({
      enabled: true,
      limits: { per_client: rate(1, 3), per_api_key: rate(1, 2), global: rate(1, 4) },
    });
    const scope = (address: string, keyId?: string) => {
      const decision = limiter.take(query(address, { keyId }));
      return `${decision?.allowed ? "allowed" : "refused"} ${decision?.scope}`;
    };
    expect(scope("192.0.2.1", "k")).toBe("allowed key");
    expect(scope("192.0.2.2", "k")).toBe("allowed key");
    expect(scope("192.0.2.3", "k")).toBe("refused key");
    expect(scope("192.0.2.1")).toBe("allowed client");
    expect(scope("192.0.2.3")).toBe("allowed global");
    expect(scope("192.0.2.3")).toBe("refused global");
  });

  test("a refusal takes nothing from the other buckets and keeps nothing of strangers", () => {
    const { limiter, clock } = limiterWith({ enabled: true, limits: { per_client: rate(1, 5), global: rate(1, 1) } });
    expect(limiter.take(query("192.0.2.1"))?.allowed).toBe(true);
    for (let count = 0; count < 1000; count++) {
      expect(limiter.take(query(`198.51.100.${count % 256}`))?.scope).toBe("global");
    }
    expect(limiter.size).toBe(1);
    clock.nowMs = 1000;
    expect(limiter.take(query("198.51.100.1"))?.allowed).toBe(true);
  });

  test("what is put back can be taken again", () => {
    const { limiter } = limiterWith({ enabled: true, limits: { per_client: rate(1, 1), global: rate(1, 1) } });
    const caller = query("192.0.2.1", { keyId: "k", perMinute: 1 });
    expect(limiter.take(caller)?.allowed).toBe(true);
    expect(limiter.take(caller)?.allowed).toBe(false);
    limiter.putBack(caller);
    expect(limiter.take(caller)?.allowed).toBe(true);
    expect(limiter.take(caller)?.allowed).toBe(false);
  });

  test("requests per minute of a key hold while the section is disabled, and stand in place of per_api_key", () => {
    const off = limiterWith({});
    const caller = query("192.0.2.1", { keyId: "k", perMinute: 3 });
    expect([0, 0, 0, 0].map(() => off.limiter.take(caller)?.allowed)).toEqual([true, true, true, false]);
    expect(off.limiter.take(caller)).toMatchObject({ scope: "key", limit: 3, windowMs: 60_000, retryAfterMs: 20_000 });
    expect(off.limiter.take(query("192.0.2.1"))).toBeUndefined();
    expect(off.limiter.take(query("192.0.2.1", { keyId: "other" }))).toBeUndefined();
    off.clock.nowMs = 20_000;
    expect(off.limiter.take(caller)?.allowed).toBe(true);

    const on = limiterWith({ enabled: true, limits: { per_api_key: rate(1, 1) } });
    expect([0, 0, 0, 0].map(() => on.limiter.take(caller)?.allowed)).toEqual([true, true, true, false]);
  });

  test("whitelisted addresses and bypass keys are held by limits of backends only", () => {
    const { limiter } = limiterWith({
      enabled: true,
      limits: { per_client: rate(1, 1), global: rate(1, 1), per_backend: rate(1, 1) },
      whitelist: ["10.0.0.0/8", "2001:db8::/32"],
      bypass_keys: ["sekret-bypass"],
    });
    for (let count = 0; count < 10; count++) {
      expect(limiter.take(query("10.1.2.3", { keyId: "k", perMinute: 1 }))).toBeUndefined();
      expect(limiter.take(query("2001:db8::1"))).toBeUndefined();
      expect(limiter.take(query("192.0.2.1", { key: "sekret-bypass" }))).toBeUndefined();
    }
    limiter.putBack(query("10.1.2.3"));
    expect(limiter.take(query("192.0.2.1", { key: "sekret-other" }))?.allowed).toBe(true);
    expect(limiter.take(query("192.0.2.1", { key: "sekret-other" }))?.allowed).toBe(false);
    expect([limiter.takeBackend("a"), limiter.takeBackend("a")]).toEqual([true, false]);
  });

  test("a backend without room is told apart, and the refusal names the shortest wait", () => {
    const { limiter, clock } = limiterWith({ enabled: true, limits: { per_backend: rate(1, 1) } });
    expect(limiter.backendHasRoom("a")).toBe(true);
    expect(limiter.takeBackend("a")).toBe(true);
    expect(limiter.backendHasRoom("a")).toBe(false);
    expect(limiter.backendRefusal(["a", "b"])).toBeUndefined();
    clock.nowMs = 300;
    expect(limiter.takeBackend("b")).toBe(true);
    expect(limiter.backendRefusal(["a", "b"])).toMatchObject({ allowed: false, scope: "backend", retryAfterMs: 700 });
    expect(limiter.backendRefusal([])).toBeUndefined();
    clock.nowMs = 1000;
    expect(limiter.backendHasRoom("a")).toBe(true);
  });

  test("exact when requests interleave", async () => {
    const { limiter } = limiterWith({ enabled: true, limits: { per_client: WIDE, global: rate(100, 100) } });
    const results = await Promise.all(
      Array.from({ length: 500 }, async (_, index) => {
        for (let turn = 0; turn < index % 7; turn++) await Promise.resolve();
        return limiter.take(query(`192.0.2.${index % 50}`))?.allowed;
      }),
    );
    expect(results.filter(Boolean)).toHaveLength(100);
  });
});

describe("guesses", () => {
  test("take tokens of their client alone, and are refused when it has none", () => {
    const { limiter, clock } = limiterWith({
      enabled: true,
      limits: { per_client: rate(1, 2), per_api_key: WIDE, per_backend: WIDE, global: rate(1, 2) },
    });
    const guesser = query("192.0.2.1");
    expect([limiter.takeForGuess(guesser), limiter.takeForGuess(guesser)]).toEqual([undefined, undefined]);
    const refusal = { allowed: false, scope: "client", retryAfterMs: 1000 };
    expect(limiter.guessRefusal(guesser)).toMatchObject(refusal);
    expect(limiter.takeForGuess(guesser)).toMatchObject(refusal);
    expect(limiter.take(guesser)).toMatchObject({ allowed: false, scope: "client" });
    // The tokens of all clients together are still there.
    expect(limiter.guessRefusal(query("192.0.2.2"))).toBeUndefined();
    expect(limiter.take(query("192.0.2.2"))).toMatchObject({ allowed: true });
    clock.nowMs += 1000;
    expect(limiter.guessRefusal(guesser)).toBeUndefined();
  });

  test("are free where no limit concerns the client", () => {
    const many = (limiter: ReturnType<typeof limiterWith>["limiter"], client: LimitQuery) =>
      Array.from({ length: 100 }, () => limiter.takeForGuess(client) ?? limiter.guessRefusal(client));
    const off = limiterWith({ enabled: false }).limiter;
    expect(many(off, query("192.0.2.1")).every((each) => each === undefined)).toBe(true);
    const listed = limiterWith({ enabled: true, limits: { per_client: rate(1, 1) }, whitelist: ["192.0.2.0/24"] });
    expect(many(listed.limiter, query("192.0.2.1")).every((each) => each === undefined)).toBe(true);
  });
});

describe("bounded memory", () => {
  const small = { enabled: true, limits: { per_client: rate(1, 2), global: rate(1_000_000, 1_000_000) } };

  test("the number of buckets stays bounded under ever new addresses, and follows the active clients", () => {
    const { limiter, clock } = limiterWith(small, { maxEntries: 100 });
    for (let count = 0; count < 20_000; count++) {
      limiter.take(query(`10.${count >> 16}.${(count >> 8) & 255}.${count & 255}`));
      expect(limiter.size).toBeLessThanOrEqual(100);
    }
    clock.nowMs = 10_000;
    for (let count = 0; count < 100; count++) limiter.take(query("192.0.2.1"));
    for (let count = 0; count < 200; count++) {
      clock.nowMs += 1000;
      limiter.take(query(`192.0.2.${count}`));
    }
    expect(limiter.size).toBeLessThan(10);
  });

  test("full buckets go first: an active client keeps its place among quiet ones", () => {
    const { limiter, clock } = limiterWith(small, { maxEntries: 3 });
    for (const last of [1, 2, 3]) limiter.take(query(`192.0.2.${last}`));
    clock.nowMs = 900;
    limiter.take(query("192.0.2.1"));
    clock.nowMs = 1000; // 2 and 3 are full again, 1 is not
    limiter.take(query("192.0.2.4"));
    expect(limiter.take(query("192.0.2.1"))).toMatchObject({ allowed: true, remaining: 0 });
    expect(limiter.take(query("192.0.2.1"))?.allowed).toBe(false);
    expect(limiter.size).toBe(2);
  });

  test("rotating addresses push a limited client out, but win it no fresh allowance", () => {
    const { limiter, clock } = limiterWith(small, { maxEntries: 50 });
    const victim = query("192.0.2.1");
    limiter.take(victim);
    limiter.take(victim);
    expect(limiter.take(victim)?.allowed).toBe(false);
    for (let count = 0; count < 5000; count++) limiter.take(query(`10.0.${count >> 8}.${count & 255}`));
    expect(limiter.take(victim)?.allowed).toBe(false);
    clock.nowMs = 1000;
    expect(limiter.take(victim)?.allowed).toBe(true);
    expect(limiter.take(victim)?.allowed).toBe(false);
  });

  test("property: with room for two, no client of ten is ever above limit x time + burst", () => {
    const requests = fc.array(
      fc.record({ client: fc.integer({ min: 0, max: 9 }), gapMs: fc.constantFrom(0, 0, 0, 10, 300, 1100) }),
      { maxLength: 300 },
    );
    fc.assert(
      fc.property(requests, fc.integer({ min: 1, max: 3 }), (schedule, maxEntries) => {
        const { limiter, clock } = limiterWith(small, { maxEntries });
        const admittedAt = new Map<number, number[]>();
        for (const { client, gapMs } of schedule) {
          clock.nowMs += gapMs;
          if (!limiter.take(query(`192.0.2.${client}`))?.allowed) continue;
          const times = admittedAt.get(client) ?? [];
          times.push(clock.nowMs);
          admittedAt.set(client, times);
          expect(limiter.size).toBeLessThanOrEqual(maxEntries);
          for (let from = 0; from < times.length; from++) {
            expect((times.length - from) * 1000).toBeLessThanOrEqual(clock.nowMs - (times[from] as number) + 2000);
          }
        }
      }),
    );
  });

  test("property: with room for all, exactly what a model of independent buckets admits", () => {
    const requests = fc.array(
      fc.record({
        client: fc.integer({ min: 0, max: 3 }),
        key: fc.option(fc.integer({ min: 0, max: 2 })),
        gapMs: fc.constantFrom(0, 0, 1, 50, 400, 2000),
      }),
      { maxLength: 200 },
    );
    fc.assert(
      fc.property(requests, (schedule) => {
        const { limiter, clock } = limiterWith({
          enabled: true,
          limits: { per_client: rate(2, 4), per_api_key: rate(1, 3), global: rate(5, 8) },
        });
        // Credit in parts of 1/10,000 of a token: a millisecond earns 20 at 2 a second, and 1 at 6 a minute.
        const model = new Map<string, { credit: number; atMs: number }>();
        const spent = (name: string, perMs: number, capacity: number) => {
          const state = model.get(name) ?? { credit: capacity * 10_000, atMs: clock.nowMs };
          state.credit = Math.min(capacity * 10_000, state.credit + (clock.nowMs - state.atMs) * perMs);
          state.atMs = clock.nowMs;
          model.set(name, state);
          return state;
        };
        for (const { client, key, gapMs } of schedule) {
          clock.nowMs += gapMs;
          const states = [spent(`client ${client}`, 20, 4), spent("global", 50, 8)];
          if (key === 0) states.push(spent("key 0", 1, 6));
          else if (key !== null) states.push(spent(`key ${key}`, 10, 3));
          const expected = states.every(({ credit }) => credit >= 10_000);
          if (expected) for (const state of states) state.credit -= 10_000;
          const keyId = key === null ? undefined : `k${key}`;
          const perMinute = key === 0 ? 6 : undefined;
          expect(limiter.take(query(`192.0.2.${client}`, { keyId, perMinute }))?.allowed).toBe(expected);
        }
      }),
    );
  });
});

describe("limits that change", () => {
  const settingsOf = (limits: object, more: object = {}) =>
    rateLimitingSection.schema.parse({
      enabled: true,
      limits: { per_client: WIDE, per_backend: WIDE, per_api_key: WIDE, global: WIDE, ...limits },
      ...more,
    });

  function start(limits: object) {
    const first = limiterWith(settingsOf(limits));
    const parts = { now: () => first.clock.nowMs, wallTime: () => EPOCH_MS + first.clock.nowMs };
    let { limiter } = first;
    return {
      clock: first.clock,
      change(next: object, more = {}): void {
        const settings = settingsOf(next, more);
        limiter = createLimiter({ ...parts, settings, previous: limiter });
      },
      /** How many are admitted in a row. */
      admitted(of: LimitQuery): number {
        let count = 0;
        while (count < 10_000 && limiter.take(of)?.allowed) count++;
        return count;
      },
      limiter: () => limiter,
    };
  }

  test("buckets keep their level when another limit changes, or none", () => {
    const { change, limiter, admitted } = start({ per_client: rate(1, 5), per_backend: rate(1, 3) });
    for (let count = 0; count < 3; count++) limiter().take(query("192.0.2.1"));
    limiter().take(query("192.0.2.9", { keyId: "own", perMinute: 4 }));
    limiter().takeBackend("a");
    change({ per_client: rate(1, 5), per_backend: rate(1, 3), global: rate(50, 50) }, { headers_on_success: true });
    expect(admitted(query("192.0.2.1"))).toBe(2);
    expect(admitted(query("192.0.2.9", { keyId: "own", perMinute: 4 }))).toBe(3);
    expect(admitted(query("192.0.2.2"))).toBe(5);
    expect(["a", "a", "a", "b"].map((name) => limiter().takeBackend(name))).toEqual([true, true, false, true]);
  });

  test("more room is earned, less room cuts, and a full bucket is full of the new number", () => {
    const { change, limiter, admitted, clock } = start({ per_client: rate(1, 10) });
    for (const address of ["192.0.2.1", "192.0.2.2"])
      for (let count = 0; count < 6; count++) limiter().take(query(address));
    limiter().take(query("192.0.2.3"));
    limiter().take(query("192.0.2.8", { keyId: "own", perMinute: 10 }));
    clock.nowMs = 1_000;
    change({ per_client: rate(2, 20) });
    // 4 were left and one was earned; two more are earned in a second under the new limit.
    expect(admitted(query("192.0.2.1"))).toBe(5);
    expect(admitted(query("192.0.2.3"))).toBe(20);
    expect(admitted(query("192.0.2.9"))).toBe(20);
    expect(admitted(query("192.0.2.7", { keyId: "own", perMinute: 5 }))).toBe(5);
    clock.nowMs = 2_000;
    expect(admitted(query("192.0.2.1"))).toBe(2);
    change({ per_client: rate(1, 3) });
    expect(admitted(query("192.0.2.2"))).toBe(3);
  });

  test("debts of the forgotten stay", () => {
    const { limiter } = limiterWith(settingsOf({ per_client: rate(1, 2) }), { maxEntries: 4 });
    for (let index = 0; index < 200; index++) limiter.take(query(`192.0.2.${index}`));
    const next = createLimiter({
      settings: settingsOf({ per_client: rate(1, 2), global: rate(500, 500) }),
      now: () => 0,
      wallTime: () => EPOCH_MS,
      maxEntries: 4,
      previous: limiter,
    });
    expect([0, 1].map(() => next.take(query("192.0.2.0"))?.allowed)).toEqual([true, false]);
  });

  test("switched off and on, all are full", () => {
    const { change, limiter, admitted } = start({ per_client: rate(1, 2) });
    limiter().take(query("192.0.2.1"));
    change({}, { enabled: false });
    expect(limiter().take(query("192.0.2.1"))).toBeUndefined();
    change({ per_client: rate(1, 2) });
    expect(admitted(query("192.0.2.1"))).toBe(2);
  });
});
