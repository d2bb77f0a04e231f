// The token bucket against a model that knows nothing of its arithmetic.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { bucketPolicy, fullBucket, isFull, look, putBack, take, takeAll } from "./token-bucket.ts";

describe("token bucket", () => {
  test("the burst at once, then one each time it was earned", () => {
    const policy = bucketPolicy(10, 1000, 3);
    const bucket = fullBucket(policy, 0);
    expect([0, 0, 0].map((at) => take(bucket, at).remaining)).toEqual([2, 1, 0]);
    expect(take(bucket, 0)).toEqual({ allowed: false, remaining: 0, retryAfterMs: 100, resetAtMs: 300 });
    expect(take(bucket, 99.999).allowed).toBe(false);
    expect(take(bucket, 100)).toMatchObject({ allowed: true, remaining: 0, resetAtMs: 400 });
    expect(take(bucket, 10_000)).toMatchObject({ allowed: true, remaining: 2 });
  });

  test("a clock that goes back earns nothing and loses nothing", () => {
    const policy = bucketPolicy(1, 1000, 1);
    const bucket = fullBucket(policy, 5000);
    expect(take(bucket, 5000).allowed).toBe(true);
    expect(take(bucket, 1000).allowed).toBe(false);
    expect(take(bucket, 5999).allowed).toBe(false);
    expect(take(bucket, 6000).allowed).toBe(true);
  });

  test("no drift: thirds of a second over 100,000 tokens", () => {
    const policy = bucketPolicy(3, 1000, 1);
    const bucket = fullBucket(policy, 0.1);
    let admitted = 0;
    for (let step = 0; step <= 333_333; step++) if (take(bucket, 0.1 + step * 100).allowed) admitted++;
    // A token each 400 ms, as the steps are 100 ms apart and credit above one token is lost, is what is possible.
    expect(admitted).toBe(Math.floor(333_333 / 4) + 1);
    const exact = fullBucket(bucketPolicy(3, 1000, 2), 0);
    let count = 0;
    for (let step = 0; step <= 300_000; step++) if (take(exact, step * 100).allowed) count++;
    expect(count).toBe(90_000 + 2);
  });

  test("a token that is put back never lifts a bucket above its capacity", () => {
    const policy = bucketPolicy(1, 1000, 2);
    const bucket = fullBucket(policy, 0);
    putBack(bucket, 0);
    expect(look(bucket, 0).remaining).toBe(2);
    take(bucket, 0);
    expect(isFull(bucket, 0)).toBe(false);
    putBack(bucket, 0);
    expect(isFull(bucket, 0)).toBe(true);
  });

  const policies = fc
    .tuple(fc.integer({ min: 1, max: 50 }), fc.constantFrom(1000, 60_000), fc.integer({ min: 1, max: 30 }))
    .map(([tokens, windowMs, capacity]) => ({ tokens, windowMs, policy: bucketPolicy(tokens, windowMs, capacity) }));
  const steps = fc.array(
    fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 400 }), fc.integer({ min: 0, max: 90_000 })),
    {
      maxLength: 200,
    },
  );

  test("property: admits exactly what a model in fractions admits, and says truly when to come back", () => {
    fc.assert(
      fc.property(policies, steps, ({ tokens, windowMs, policy }, gaps) => {
        const bucket = fullBucket(policy, 0);
        let nowMs = 0;
        // Credit in 1/windowMs of a token, in arbitrary precision.
        let credit = BigInt(policy.capacity) * BigInt(windowMs);
        for (const gapMs of gaps) {
          nowMs += gapMs;
          credit += BigInt(gapMs) * BigInt(tokens);
          const full = BigInt(policy.capacity) * BigInt(windowMs);
          if (credit > full) credit = full;
          const expected = credit >= BigInt(windowMs);
          if (expected) credit -= BigInt(windowMs);
          const result = take(bucket, nowMs);
          expect(result.allowed).toBe(expected);
          expect(result.remaining).toBe(Number(credit / BigInt(windowMs)));
          if (!result.allowed) {
            expect(look({ ...bucket }, nowMs + result.retryAfterMs).allowed).toBe(true);
            expect(look({ ...bucket }, nowMs + result.retryAfterMs - 0.002).allowed).toBe(false);
          }
          expect(isFull({ ...bucket }, result.resetAtMs)).toBe(true);
        }
      }),
    );
  });

  test("property: in every stretch of time, admitted is at most limit x time + burst", () => {
    fc.assert(
      fc.property(policies, steps, ({ tokens, windowMs, policy }, gaps) => {
        const bucket = fullBucket(policy, 0);
        let nowMs = 0;
        const admittedAt: number[] = [];
        for (const gapMs of gaps) {
          nowMs += gapMs;
          if (take(bucket, nowMs).allowed) admittedAt.push(nowMs);
        }
        for (let from = 0; from < admittedAt.length; from++) {
          for (let to = from; to < admittedAt.length; to++) {
            const elapsedMs = (admittedAt[to] as number) - (admittedAt[from] as number);
            expect((to - from + 1) * windowMs).toBeLessThanOrEqual(elapsedMs * tokens + policy.capacity * windowMs);
          }
        }
      }),
      { numRuns: 50 },
    );
  });

  test("property: of several buckets, all give a token or none does, and a refusal names the longest wait", () => {
    fc.assert(
      fc.property(fc.array(policies, { minLength: 1, maxLength: 4 }), steps, (specs, gaps) => {
        const buckets = specs.map(({ policy }) => fullBucket(policy, 0));
        let nowMs = 0;
        for (const gapMs of gaps) {
          nowMs += gapMs;
          const before = buckets.map((bucket) => look(bucket, nowMs));
          const result = takeAll(buckets, nowMs);
          const after = buckets.map((bucket) => look(bucket, nowMs));
          expect(result.allowed).toBe(before.every(({ allowed }) => allowed));
          const taken = result.allowed ? 1 : 0;
          expect(after.map(({ remaining }) => remaining)).toEqual(before.map(({ remaining }) => remaining - taken));
          if (result.allowed) expect(result.remaining).toBe(Math.min(...after.map(({ remaining }) => remaining)));
          else expect(result.retryAfterMs).toBe(Math.max(...after.map(({ retryAfterMs }) => retryAfterMs)));
        }
      }),
    );
  });
});
