// What a backend's word draws, and what answers make of it.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { confirms, drew, judge, mayDraw, newTrust, passed } from "./claim-trust.ts";

const usage = (total: number, cacheRead?: number) => ({
  input: { total, ...(cacheRead !== undefined && { cacheRead }) },
  output: { total: 1 },
});

test("property: claims that no answer confirms draw an equal share of the requests, and eight more", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 300 }), (candidates) => {
      const trust = newTrust();
      let drawn = 0;
      let share = 0;
      for (const count of candidates) {
        share += 1 / count;
        const isDrawn = mayDraw(trust);
        passed(trust, count);
        if (!isDrawn) continue;
        drew(trust);
        drawn++;
      }
      expect(drawn).toBeLessThanOrEqual(8 + share + 1e-6);
      expect(drawn).toBeGreaterThanOrEqual(Math.min(8, candidates.length));
    }),
  );
});

test("claims that are confirmed draw as many as they like", () => {
  const trust = newTrust();
  for (let count = 0; count < 100; count++) {
    expect(mayDraw(trust)).toBe(true);
    drew(trust);
    passed(trust, 8);
    expect(judge(trust, true, 1, 600)).toBe(false);
  }
});

test("three contradictions in a row are distrusted for a while, and begin again behind it", () => {
  const trust = newTrust();
  const judged = [false, false, true, false, false, false].map((isConfirmed) => judge(trust, isConfirmed, 100, 600));
  expect(judged).toEqual([false, false, false, false, false, true]);
  expect(trust.distrustedUntil).toBe(700);
  for (let count = 0; count < 5; count++) expect(judge(trust, false, 699, 600)).toBe(false);
  expect([1, 2, 3].map(() => judge(trust, false, 700, 600))).toEqual([false, false, true]);
});

test("an answer confirms a claim by a quarter of what was claimed, and says nothing where nothing is counted", () => {
  const half = { told: 10, blocks: 20 };
  expect(confirms(usage(1_000, 500), half)).toBe(true);
  expect(confirms(usage(1_000, 125), half)).toBe(true);
  expect(confirms(usage(1_000, 124), half)).toBe(false);
  expect(confirms(usage(1_000, 0), { told: 1, blocks: 20 })).toBe(false);
  expect(confirms(usage(1_000, 0), undefined)).toBeUndefined();
  expect(confirms(usage(1_000), half)).toBeUndefined();
  expect(confirms(usage(0, 0), half)).toBeUndefined();
  expect(confirms(undefined, half)).toBeUndefined();
});

test("a new picture behind a cached text contradicts nothing", () => {
  expect(confirms(usage(6_000, 500), { told: 4, blocks: 4 })).toBe(true);
  expect(confirms(usage(6_000, 0), { told: 4, blocks: 4 })).toBe(false);
});
