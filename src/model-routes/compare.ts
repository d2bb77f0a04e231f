// Numbers of two targets side by side: means with what they may be off by, and whether one is worse than the other.

/** A mean over so many values; `deviation` is their standard deviation. */
export interface Mean {
  count: number;
  mean: number;
  deviation: number;
}

/** A value and the bounds between which the true one lies in 95 of 100 cases. */
export interface Interval {
  value: number;
  low: number;
  high: number;
}

/** Of the normal distribution, for 95 %. */
const Z = 1.96;

/** Undefined of no values. */
export function meanOf(values: readonly number[]): Mean | undefined {
  const count = values.length;
  if (count === 0) return undefined;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { count, mean, deviation: count < 2 ? 0 : Math.sqrt(squares / (count - 1)) };
}

/** The value that so large a share of them does not exceed; undefined of no values. */
export function quantileOf(values: readonly number[], share: number): number | undefined {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
}

/** A share of hits with its bounds (Wilson, 1927), which hold for few values and for shares near 0 and 1. */
export function shareOf(hits: number, count: number): Interval {
  if (count === 0) return { value: 0, low: 0, high: 1 };
  const value = hits / count;
  const squared = Z ** 2 / count;
  const middle = (value + squared / 2) / (1 + squared);
  const reach = (Z / (1 + squared)) * Math.sqrt((value * (1 - value)) / count + squared / (4 * count));
  return { value, low: Math.max(0, middle - reach), high: Math.min(1, middle + reach) };
}

/** How much larger the first share is (Newcombe, 1998, method 10). */
export function differenceOfShares(left: Interval, right: Interval): Interval {
  const value = left.value - right.value;
  return {
    value,
    low: value - Math.hypot(left.value - left.low, right.high - right.value),
    high: value + Math.hypot(left.high - left.value, right.value - right.low),
  };
}

/** How much larger the first mean is (Welch, 1947); undefined where one of them has too few values to tell. */
export function differenceOfMeans(left: Mean | undefined, right: Mean | undefined): Interval | undefined {
  if (left === undefined || right === undefined || left.count < 2 || right.count < 2) return undefined;
  const value = left.mean - right.mean;
  const reach = Z * Math.sqrt(left.deviation ** 2 / left.count + right.deviation ** 2 / right.count);
  return { value, low: value - reach, high: value + reach };
}
