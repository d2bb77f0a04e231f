// Numbers that lose digits when JSON is parsed and written again.

const TEXTS = /"(?:[^"\\]|\\.)*"/g;

/** A double holds any number of 15 digits, and none beyond 1e308. */
const LONG_NUMBER = /[\d.]{16}|\d[eE]\+?\d{3}/;

export function mayLoseDigits(json: string): boolean {
  return LONG_NUMBER.test(json.replaceAll(TEXTS, ""));
}
