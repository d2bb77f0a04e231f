// A moment as people and programs write it in a query parameter.

/** What JavaScript can express as a date. */
const MAX_TIME_MS = 8.64e15;

const RFC_3339 = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;

export const TIME_FORMS = "Unix milliseconds, or RFC 3339 such as 2026-01-31T12:00:00Z";

/** Milliseconds since 1970, or undefined for a text that is no time. */
export function parseTime(text: string): number | undefined {
  // A "+" that was not encoded arrives as a space.
  const written = text.replace(/ (?=\d{2}:\d{2}$)/, "+");
  const timeMs = /^-?\d{1,16}$/.test(written)
    ? Number(written)
    : RFC_3339.test(written)
      ? Date.parse(written)
      : Number.NaN;
  return Math.abs(timeMs) <= MAX_TIME_MS ? timeMs : undefined;
}
