// Comparisons of targets, against values that were worked out elsewhere.

import { expect, test } from "bun:test";
import { differenceOfMeans, differenceOfShares, meanOf, quantileOf, shareOf } from "./compare.ts";

test("the bounds of a share are those of Wilson's interval", () => {
  const { value, low, high } = shareOf(2, 50);
  expect(value).toBe(0.04);
  expect(low).toBeCloseTo(0.011, 3);
  expect(high).toBeCloseTo(0.1346, 3);
  expect(shareOf(0, 0)).toEqual({ value: 0, low: 0, high: 1 });
  expect(shareOf(50, 50).high).toBeLessThanOrEqual(1);
});

test("the difference of shares is that of Newcombe's method 10", () => {
  // Newcombe (1998), table II, example (a): 56/70 and 48/80.
  const { value, low, high } = differenceOfShares(shareOf(56, 70), shareOf(48, 80));
  expect(value).toBeCloseTo(0.2, 4);
  expect(low).toBeCloseTo(0.0524, 3);
  expect(high).toBeCloseTo(0.3339, 3);
});

test("means have the deviation of a sample, and a difference has bounds", () => {
  expect(meanOf([2, 4, 4, 4, 5, 5, 7, 9])).toMatchObject({ count: 8, mean: 5 });
  expect(meanOf([2, 4, 4, 4, 5, 5, 7, 9])?.deviation).toBeCloseTo(2.138, 3);
  expect(meanOf([])).toBeUndefined();
  const difference = differenceOfMeans(meanOf([10, 12, 14]), meanOf([4, 6, 8]));
  expect(difference?.value).toBe(6);
  expect(difference?.low).toBeCloseTo(6 - 1.96 * Math.sqrt(8 / 3), 6);
  expect(differenceOfMeans(meanOf([1]), meanOf([1, 2]))).toBeUndefined();
});

test("a quantile is one of the values", () => {
  const values = Array.from({ length: 100 }, (_, index) => 100 - index);
  expect(quantileOf(values, 0.95)).toBe(95);
  expect(quantileOf([7], 0.95)).toBe(7);
  expect(quantileOf([], 0.95)).toBeUndefined();
});
