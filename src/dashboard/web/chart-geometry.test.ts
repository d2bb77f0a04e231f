// Where the lines of a chart run.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { areaPath, indexAt, linePath, maximumOf, niceMaximum, xOf } from "./chart-geometry.ts";

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

test("a line has gaps where nothing is known", () => {
  expect(linePath([0, 5, undefined, 10, 5], 10)).toBe("M0 100L250 50M750 0L1000 50");
  expect(linePath([undefined, 5, undefined], 10)).toBe("M500 50h0");
  expect(linePath([], 10)).toBe("");
});

test("an area is closed at both ends", () => {
  expect(areaPath([10, 5, undefined], 10)).toBe("M0 100L0 0L500 50L500 100Z");
  expect(areaPath([undefined, undefined], 10)).toBe("");
});

test("values beyond the scale stay in the picture", () => expect(linePath([20, 20], 10)).toBe("M0 0L1000 0"));

test("the place of a value, there and back", () => {
  for (let index = 0; index < 150; index++) expect(indexAt(xOf(index, 150) / 1_000, 150)).toBe(index);
  expect([indexAt(-1, 150), indexAt(2, 150), xOf(0, 1)]).toEqual([0, 149, 0]);
});

test("maximum of several lines", () => expect(maximumOf([[1, undefined, 3], [], [2]])).toBe(3));
