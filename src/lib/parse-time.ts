// A moment as people and programs write it in a query parameter.

/** The largest time that a Date can hold. */
const MAX_TIME_MS = 8.64e15;

const RFC_3339 = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;

export const TIME_FORMS = "Unix milliseconds, a date such as 2026-01-31, or RFC 3339 such as 2026-01-31T12:00:00Z";

/** The accepted forms, for JSON Schema. */
export const TIME_PATTERN =
  "^(-?\\d{1,15}|\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])([Tt ]([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d))?)$";

/** Milliseconds since 1970, or undefined for a text that is no time. */
export function parseTime(text: string): number | undefined {
  // A "+" that was not encoded arrives as a space.
  const written = text.replace(/ (?=\d{2}:\d{2}$)/, "+");
  const date = DATE.exec(written);
  if (date !== null) return startOfDate(Number(date[1]), Number(date[2]), Number(date[3]));
  const timeMs = /^-?\d{1,16}$/.test(written)
    ? Number(written)
    : RFC_3339.test(written)
      ? Date.parse(written)
      : Number.NaN;
  return Math.abs(timeMs) <= MAX_TIME_MS ? timeMs : undefined;
}

/** Midnight in the time zone of this process; undefined for a day that the calendar does not have. */
function startOfDate(year: number, month: number, day: number): number | undefined {
  const date = new Date(year, month - 1, day);
  return date.getMonth() === month - 1 && date.getDate() === day ? date.getTime() : undefined;
}
