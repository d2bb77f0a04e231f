// Where the lines of a chart run, in units of its own: 0 to WIDTH across, 0 to HEIGHT down.

export const WIDTH = 1_000;
export const HEIGHT = 100;

const STEPS: readonly number[] = [1, 2, 2.5, 5, 10];

/** The smallest round number that is not below, so that a scale ends with it. */
export function niceMaximum(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = STEPS.find((each) => each * power >= value * 0.999_999) ?? 10;
  return step * power;
}

export type Values = readonly (number | undefined)[];

export function maximumOf(lists: readonly Values[]): number {
  return lists.reduce((most, values) => values.reduce<number>((found, value) => Math.max(found, value ?? 0), most), 0);
}

/** Lines through the values; where there is none, a line ends and another one begins. */
export function linePath(values: Values, maximum: number): string {
  let path = "";
  let isOpen = false;
  for (const [index, value] of values.entries()) {
    if (value === undefined) isOpen = false;
    else {
      path += `${isOpen ? "L" : "M"}${xOf(index, values.length)} ${yOf(value, maximum)}`;
      // A value that stands alone is a dot.
      if (!isOpen && values[index + 1] === undefined) path += "h0";
      isOpen = true;
    }
  }
  return path;
}

/** The same, filled down to zero. */
export function areaPath(values: Values, maximum: number): string {
  let path = "";
  let first: number | undefined;
  for (let index = 0; index <= values.length; index++) {
    const value = values[index];
    if (value !== undefined) {
      const x = xOf(index, values.length);
      path += first === undefined ? `M${x} ${HEIGHT}L${x} ${yOf(value, maximum)}` : `L${x} ${yOf(value, maximum)}`;
      first ??= index;
    } else if (first !== undefined) {
      path += `L${xOf(index - 1, values.length)} ${HEIGHT}Z`;
      first = undefined;
    }
  }
  return path;
}

export function xOf(index: number, length: number): number {
  return round(length < 2 ? 0 : (index / (length - 1)) * WIDTH);
}

function yOf(value: number, maximum: number): number {
  return round(HEIGHT - Math.min(1, value / maximum) * HEIGHT);
}

/** The value nearest to a place across, from 0 to 1. */
export function indexAt(share: number, length: number): number {
  return Math.max(0, Math.min(length - 1, Math.round(share * (length - 1))));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
