// Query parameters: times, numbers, flags and windows; what makes no sense is refused with its name.

import type { JsonSchema } from "../config/schema/schema-export.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { nearest } from "../lib/nearest.ts";
import { parseTime, TIME_FORMS, TIME_PATTERN } from "../lib/parse-time.ts";
import type { Call } from "../server/endpoint.ts";

const MAXIMUM_SHOWN_LENGTH = 64;

export function queryOf({ request }: Pick<Call, "request">): URLSearchParams {
  return new URL(request.url).searchParams;
}

/** Throws 400: what is misspelt here would else be a filter that does not filter, or a dry run that is none. */
export function refuseOtherParameters(call: Call, known: readonly string[]): void {
  for (const name of queryOf(call).keys()) {
    if (known.includes(name)) continue;
    const shown = name.slice(0, MAXIMUM_SHOWN_LENGTH);
    const meant = nearest(shown, known);
    const hint =
      meant !== undefined
        ? `did you mean '${meant}'?`
        : known.length > 0
          ? `known are ${known.join(", ")}.`
          : "this endpoint has none.";
    throw new GatewayError(ERRORS.invalidRequest, `There is no query parameter '${shown}' here: ${hint}`, {
      param: shown,
    });
  }
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const DURATIONS_MS = { "30m": HOUR_MS / 2, "1h": HOUR_MS, "24h": DAY_MS, "7d": 7 * DAY_MS, "30d": 30 * DAY_MS };

/** Windows that begin with a day, a week (ISO 8601: on Monday) or a month, in the time zone of this process. */
const CALENDAR_STARTS = {
  today: (now: Date) => new Date(now.getFullYear(), now.getMonth(), now.getDate()),
  this_week: (now: Date) => new Date(now.getFullYear(), now.getMonth(), now.getDate() - ((now.getDay() + 6) % 7)),
  this_month: (now: Date) => new Date(now.getFullYear(), now.getMonth(), 1),
};

const WINDOWS: Readonly<Record<string, (nowMs: number) => number>> = {
  ...Object.fromEntries(Object.entries(DURATIONS_MS).map(([name, ms]) => [name, () => ms])),
  ...Object.fromEntries(
    Object.entries(CALENDAR_STARTS).map(([name, start]) => [name, (nowMs) => nowMs - start(new Date(nowMs)).getTime()]),
  ),
};

const ALL = "all";
/** Values of the query parameter `window`. */
export const WINDOW_NAMES: readonly string[] = [ALL, ...Object.keys(WINDOWS)];
/** Windows of statistics that reach back a week at most. */
export const STATS_WINDOW_NAMES: readonly string[] = WINDOW_NAMES.filter(
  (name) => name !== "30d" && name !== "this_month",
);

export interface StatsWindow {
  name: string;
  /** Undefined: all time. */
  ms: number | undefined;
}

/** Throws 400 for a window that is not among these. */
export function readWindow(query: URLSearchParams, names: readonly string[], nowMs: number): StatsWindow {
  const name = query.get("window") ?? ALL;
  if (!names.includes(name)) throw badParameter("window", `one of ${names.join(", ")}`);
  return { name, ms: WINDOWS[name]?.(nowMs) };
}

export interface Times {
  sinceMs?: number;
  untilMs?: number;
}

/** A window, or the times of `since` and `until`. */
export function readTimes(query: URLSearchParams, nowMs: number): Times {
  const sinceMs = readTime(query, "since");
  const untilMs = readTime(query, "until");
  const { ms } = readWindow(query, WINDOW_NAMES, nowMs);
  if (ms === undefined) {
    return { ...(sinceMs !== undefined && { sinceMs }), ...(untilMs !== undefined && { untilMs }) };
  }
  if (sinceMs !== undefined || untilMs !== undefined)
    throw badParameter("window", "left out where 'since' or 'until' is given");
  return { sinceMs: nowMs - ms };
}

/** A time in a query parameter, for the document. */
export const timeText: JsonSchema = { type: "string", pattern: TIME_PATTERN };

/** Up to so many different names with commas between, for the document; the reader refuses doubles. */
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
  const value = toWholeNumber(text);
  if (value !== undefined && value >= minimum) return value;
  throw badParameter(name, `a whole number, at least ${minimum}`);
}

export function toWholeNumber(text: string): number | undefined {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : undefined;
}

const FLAGS: Readonly<Record<string, boolean>> = { true: true, "1": true, "": true, false: false, "0": false };

/** `?force` alone means true. */
export function readFlag(query: URLSearchParams, name: string, ifAbsent: boolean): boolean {
  const text = query.get(name)?.toLowerCase();
  if (text === undefined) return ifAbsent;
  const value = Object.hasOwn(FLAGS, text) ? FLAGS[text] : undefined;
  if (value === undefined) throw badParameter(name, "true or false");
  return value;
}

/** True for ?dry_run=true. */
export function isDryRun(query: URLSearchParams): boolean {
  return readFlag(query, "dry_run", false);
}

export function badParameter(param: string, expected: string): GatewayError {
  return new GatewayError(ERRORS.invalidRequest, `'${param}' must be ${expected}.`, { param });
}
