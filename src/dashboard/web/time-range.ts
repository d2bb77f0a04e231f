// The time that a page shows: as the address holds it, as people read it, and as the gateway is asked for it.

import { dateTime } from "./format.ts";

/** `from` and `to` are Unix milliseconds. */
export interface Span {
  from: number;
  to: number;
}

/** A length up to now, a part of the calendar up to now, or a span between two moments. */
export type TimeRange =
  | { kind: "last"; ms: number }
  | { kind: "since"; start: CalendarStart }
  | ({ kind: "span" } & Span);

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const UNITS: Readonly<Record<string, number>> = { s: SECOND, m: MINUTE, h: HOUR, d: DAY };

/** The first moment of a day, of a week (ISO 8601: on Monday) or of a month, by the browser's clock. */
const CALENDAR_STARTS = {
  today: (now: Date) => new Date(now.getFullYear(), now.getMonth(), now.getDate()),
  this_week: (now: Date) => new Date(now.getFullYear(), now.getMonth(), now.getDate() - ((now.getDay() + 6) % 7)),
  this_month: (now: Date) => new Date(now.getFullYear(), now.getMonth(), 1),
} as const;
type CalendarStart = keyof typeof CALENDAR_STARTS;

const CALENDAR_LABELS: Readonly<Record<CalendarStart, string>> = {
  today: "Today",
  this_week: "This week",
  this_month: "This month",
};

/** Offered by the menu, as the address holds them. */
export const PRESETS = ["5m", "15m", "30m", "1h", "6h", "24h", "7d", "30d", ...Object.keys(CALENDAR_STARTS)] as const;

export const DEFAULT_RANGE: TimeRange = { kind: "last", ms: HOUR };

const STATS_WINDOWS: ReadonlySet<string> = new Set(["30m", "1h", "24h", "7d"]);

/** Shorter spans than this are no charts. */
const MIN_SPAN_MS = 10 * SECOND;

/** Of "2026-03-01". */
const DAY_LENGTH = 10;

/** The default for what is no range. */
export function parseRange(text: string | null): TimeRange {
  if (text === null) return DEFAULT_RANGE;
  if (Object.hasOwn(CALENDAR_STARTS, text)) return { kind: "since", start: text as CalendarStart };
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (count !== undefined && Number(count) > 0)
    return { kind: "last", ms: Number(count) * (UNITS[unit as string] as number) };
  const [, from, to] = /^(\d{1,15})-(\d{1,15})$/.exec(text) ?? [];
  if (from !== undefined && Number(to) - Number(from) >= MIN_SPAN_MS)
    return { kind: "span", from: Number(from), to: Number(to) };
  return DEFAULT_RANGE;
}

/** For the address; parseRange() reads it again. */
export function rangeText(range: TimeRange): string {
  if (range.kind === "since") return range.start;
  if (range.kind === "span") return `${Math.round(range.from)}-${Math.round(range.to)}`;
  const { ms } = range;
  // "24h", not "1d".
  const unit = ["d", "h", "m"].find((name) => ms % (UNITS[name] as number) === 0 && (name !== "d" || ms > DAY)) ?? "s";
  return `${Math.round(ms / (UNITS[unit] as number))}${unit}`;
}

export function rangeLabel(range: TimeRange): string {
  if (range.kind === "since") return CALENDAR_LABELS[range.start];
  if (range.kind === "span") {
    const [from, to] = [dateTime(range.from), dateTime(range.to)];
    return `${from} – ${from.slice(0, DAY_LENGTH) === to.slice(0, DAY_LENGTH) ? to.slice(DAY_LENGTH + 1) : to}`;
  }
  const text = rangeText(range);
  const [count, unit] = [text.slice(0, -1), text.at(-1)];
  return `Last ${count} ${unit === "m" ? "min" : unit}`;
}

/** Whether the range ends with the present, so that it moves on. */
export function isLive(range: TimeRange): boolean {
  return range.kind !== "span";
}

/** As windows of GET /admin/stats are named; undefined where there is none of this length. */
export function statsWindowOf(range: TimeRange): string | undefined {
  if (range.kind === "since") return range.start === "this_month" ? undefined : range.start;
  const text = rangeText(range);
  return STATS_WINDOWS.has(text) ? text : undefined;
}

export function spanOf(range: TimeRange, nowMs: number): Span {
  if (range.kind === "span") return range;
  const from = range.kind === "last" ? nowMs - range.ms : CALENDAR_STARTS[range.start](new Date(nowMs)).getTime();
  return { from: Math.min(from, nowMs - MIN_SPAN_MS), to: nowMs };
}

/** A part of a chart that was marked with the mouse; undefined where it is too short to be meant. */
export function zoomed(from: number, to: number): TimeRange | undefined {
  const [first, last] = from < to ? [from, to] : [to, from];
  return last - first < MIN_SPAN_MS ? undefined : { kind: "span", from: Math.round(first), to: Math.round(last) };
}

/** Twice as long around the same middle, up to now. */
export function zoomedOut({ from, to }: Span, nowMs: number): TimeRange {
  const half = (to - from) / 2;
  return { kind: "span", from: Math.max(0, Math.round(from - half)), to: Math.round(Math.min(nowMs, to + half)) };
}

/** What a text field of a date and time holds (`2026-03-01T14:03`), in the browser's time zone. */
export function fieldTime(atMs: number): string {
  return dateTime(atMs).replace(" ", "T").slice(0, 16);
}
