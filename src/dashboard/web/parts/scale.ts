// The numbers on the scales of a chart: where they end, and how times are written.

import { clockTime, dateTime } from "../format.ts";

const STEPS: readonly number[] = [1, 2, 2.5, 5, 10];
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** The smallest round number that is not below, so that a scale ends with it. */
export function niceMaximum(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = STEPS.find((each) => each * power >= value * 0.999_999) ?? 10;
  return step * power;
}

/** Of values; those that are not known do not count. */
export function maximumOf(values: readonly (number | undefined)[]): number {
  return values.reduce<number>((most, value) => Math.max(most, value ?? 0), 0);
}

/** As short as times that are `stepMs` apart can be told from each other. */
export function timeText(atMs: number, stepMs: number): string {
  if (stepMs >= DAY_MS) return dateTime(atMs).slice(5, 10);
  const text = clockTime(atMs);
  if (stepMs < MINUTE_MS) return text;
  return text === "00:00:00" ? dateTime(atMs).slice(5, 10) : text.slice(0, 5);
}

/** Values that have no neighbours: a line through them would not be seen. */
export function loneValues(values: ArrayLike<number | null | undefined>): number[] {
  const lone: number[] = [];
  for (let index = 0; index < values.length; index++) {
    if (values[index] != null && values[index - 1] == null && values[index + 1] == null) lone.push(index);
  }
  return lone;
}
