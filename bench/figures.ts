// What rounds of figures come to.

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** How far the highest figure lies above the lowest, as a part of the lowest. */
export function spreadOf(values: readonly number[]): number {
  return values.length < 2 ? 0 : Math.max(...values) / Math.min(...values) - 1;
}

export function medianRatio(figures: readonly number[], base: readonly number[]): number {
  return median(pairwise(figures, base, (left, right) => left / right));
}

/** Round by round: neighbours in time saw the same machine. */
export function pairwise(
  left: readonly number[],
  right: readonly number[],
  combine: (left: number, right: number) => number,
): number[] {
  return left.map((value, index) => combine(value, right[Math.min(index, right.length - 1)]!));
}
