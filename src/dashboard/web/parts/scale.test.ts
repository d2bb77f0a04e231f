// The numbers on the scales of a chart.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { loneValues, maximumOf, niceMaximum, timeText } from "./scale.ts";

test.each([
  [0, 1],
  [Number.NaN, 1],
  [1, 1],
  [1.2, 2],
  [2.3, 2.5],
  [3, 5],
  [7, 10],
  [100, 100],
  [101, 200],
  [0.03, 0.05],
])("the scale for %d ends at %d", (value, maximum) => expect(niceMaximum(value)).toBeCloseTo(maximum, 10));

test("the scale is never below the value, and never far above", () => {
  fc.assert(
    fc.property(fc.double({ min: 1e-6, max: 1e12, noNaN: true }), (value) => {
      const maximum = niceMaximum(value);
      expect(maximum).toBeGreaterThanOrEqual(value * 0.999_99);
      expect(maximum).toBeLessThanOrEqual(value * 2.51);
    }),
  );
});

test("the maximum leaves out what is not known", () => {
  expect(maximumOf([1, undefined, 3])).toBe(3);
  expect(maximumOf([])).toBe(0);
});

test("times are as exact as their distance", () => {
  const atMs = new Date(2026, 2, 1, 14, 3, 27).getTime();
  expect(timeText(atMs, 10_000)).toBe("14:03:27");
  expect(timeText(atMs, 60_000)).toBe("14:03");
  expect(timeText(new Date(2026, 2, 1).getTime(), 3_600_000)).toBe("03-01");
  expect(timeText(atMs, 86_400_000)).toBe("03-01");
});

test("values without neighbours are found", () => {
  expect(loneValues([1, null, 2, 3, undefined, 4])).toEqual([0, 5]);
  expect(loneValues([null, 5, null])).toEqual([1]);
  expect(loneValues([])).toEqual([]);
});
