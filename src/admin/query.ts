// Query parameters of what the gateway has seen: times, numbers and windows; what makes no sense is refused with its name.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { parseTime, TIME_FORMS, TIME_PATTERN } from "../lib/parse-time.ts";

const HOUR_MS = 3_600_000;

export const WINDOW_MS: Readonly<Record<string, number>> = {
  "30m": HOUR_MS / 2,
  "1h": HOUR_MS,
  "24h": 24 * HOUR_MS,
  "7d": 7 * 24 * HOUR_MS,
};

export const WINDOW_NAMES: readonly string[] = Object.keys(WINDOW_MS);

/** Windows that begin with a day, a week (ISO 8601: on Monday) or a month, in the time zone of this process. */
const CALENDAR_STARTS: Readonly<Record<string, (now: Date) => Date>> = {
  today: (now) => new Date(now.getFullYear(), now.getMonth(), now.getDate()),
  this_week: (now) => new Date(now.getFullYear(), now.getMonth(), now.getDate() - ((now.getDay() + 6) % 7)),
  this_month: (now) => new Date(now.getFullYear(), now.getMonth(), 1),
};

export const CALENDAR_WINDOWS: readonly string[] = Object.keys(CALENDAR_STARTS);

/** When a window of the calendar began; undefined for any other name. */
export function startOfCalendarWindow(name: string, nowMs: number): number | undefined {
  const start = Object.hasOwn(CALENDAR_STARTS, name) ? CALENDAR_STARTS[name] : undefined;
  return start?.(new Date(nowMs)).getTime();
}

/** What the query parameter `window` asks for. */
export interface StatsWindow {
  name: string;
  /** Undefined: all time. */
  ms: number | undefined;
}

/** Throws 400 for a window that does not exist. */
export function readWindow(query: URLSearchParams, windows = WINDOW_MS): StatsWindow {
  const name = query.get("window") ?? "all";
  if (name === "all") return { name, ms: undefined };
  const ms = Object.hasOwn(windows, name) ? windows[name] : undefined;
  if (ms !== undefined) return { name, ms };
  throw new GatewayError(
    ERRORS.invalidRequest,
    `The window must be one of ${Object.keys(windows).join(", ")}; leave it out for everything since the last reset.`,
    { param: "window" },
  );
}

/** A time in a query parameter, for the document. */
export const timeText: JsonSchema = { type: "string", pattern: TIME_PATTERN };

/** Up to so many different names with commas between, for the document; that they differ is told by the reader. */
export function groupsPattern(names: readonly string[], most: number): string {
  const one = `(${names.join("|")})`;
  return `^${one}(,${one}){0,${most - 1}}$`;
}

export function readTime(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  const timeMs = parseTime(text);
  if (timeMs === undefined) throw badParameter(name, `a time: ${TIME_FORMS}`);
  return timeMs;
}

export function readNumber(query: URLSearchParams, name: string, minimum: number): number | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  if (/^\d{1,12}$/.test(text) && Number(text) >= minimum) return Number(text);
  throw badParameter(name, `a whole number, at least ${minimum}`);
}

export function badParameter(param: string, expected: string): GatewayError {
  return new GatewayError(ERRORS.invalidRequest, `'${param}' must be ${expected}.`, { param });
}
