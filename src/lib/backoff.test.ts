// Backoff delays: their growth, their limit, and the range that jitter may take them to.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { backoffDelayMs } from "./backoff.ts";

const policy = { baseDelayMs: 100, maxDelayMs: 1_000, multiplier: 2, jitter: false };

describe("backoff", () => {
  test("starts at the base and grows by the multiplier up to the limit", () => {
    const delays = [1, 2, 3, 4, 5, 20, 2_000].map((failures) => backoffDelayMs(policy, failures, () => 0));
    expect(delays).toEqual([100, 200, 400, 800, 1_000, 1_000, 1_000]);
  });

  test("without jitter chance plays no part", () => {
    const random = () => {
      throw new Error("asked for a random number");
    };
    expect(backoffDelayMs(policy, 2, random)).toBe(200);
  });

  test("jitter spreads the delay over its upper half", () => {
    const jittered = { ...policy, jitter: true };
    expect([0, 0.5, 0.99].map((value) => backoffDelayMs(jittered, 3, () => value))).toEqual([200, 300, 398]);
  });

  test("property: never beyond the limit, never less than half of what it is without jitter", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 10_000 }),
        fc.integer({ min: 1, max: 60_000 }),
        fc.double({ min: 1, max: 10, noNaN: true }),
        fc.integer({ min: 1, max: 20 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (baseDelayMs, maxDelayMs, multiplier, failures, value) => {
          const plain = { baseDelayMs, maxDelayMs, multiplier, jitter: false };
          const full = backoffDelayMs(plain, failures, () => value);
          const jittered = backoffDelayMs({ ...plain, jitter: true }, failures, () => value);
          expect(full).toBeLessThanOrEqual(maxDelayMs);
          expect(full).toBeGreaterThanOrEqual(Math.min(baseDelayMs, maxDelayMs));
          expect(jittered).toBeGreaterThanOrEqual(full / 2);
          expect(jittered).toBeLessThanOrEqual(full);
        },
      ),
    );
  });
});
