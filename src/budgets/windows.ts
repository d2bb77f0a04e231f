// The stretches of time that a budget counts in: of the calendar in a time zone, or a duration up to now.

import type { BudgetWindow } from "../config/sections/budgets.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** A duration is counted in so many parts: what was spent is forgotten part by part. */
const PARTS = 60;

/** What is spent from `fromMs` until `untilMs` counts until `endsMs`. Milliseconds since 1970. */
export interface BudgetSpan {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly endsMs: number;
}

/** The span that the time lies in. Spans of a window do not overlap, and leave no gap. */
export type SpanAt = (timeMs: number) => BudgetSpan;

/** @param resetAtMs - no span begins before this time and goes on behind it */
export function spansOf(window: BudgetWindow, timeZone: string, resetAtMs = 0): SpanAt {
  const at = "unit" in window ? calendarSpans(window.unit, timeZone) : rollingSpans(window.rollingMs);
  let last: BudgetSpan | undefined;
  return (timeMs) => {
    if (last !== undefined && last.fromMs <= timeMs && timeMs < last.untilMs) return last;
    const { fromMs, untilMs, endsMs } = at(timeMs);
    if (timeMs < resetAtMs)
      last = { fromMs, untilMs: Math.min(untilMs, resetAtMs), endsMs: Math.min(endsMs, resetAtMs) };
    else last = { fromMs: Math.max(fromMs, resetAtMs), untilMs, endsMs };
    return last;
  };
}

/** A part counts in whole as long as any of it lies in the window: never less is counted than was spent. */
function rollingSpans(rollingMs: number): SpanAt {
  const partMs = Math.max(1, Math.ceil(rollingMs / PARTS));
  return (timeMs) => {
    const fromMs = Math.floor(timeMs / partMs) * partMs;
    return { fromMs, untilMs: fromMs + partMs, endsMs: fromMs + partMs + rollingMs };
  };
}

function calendarSpans(unit: Extract<BudgetWindow, { unit: unknown }>["unit"], timeZone: string): SpanAt {
  const zone = zoneOf(timeZone);
  const span = (fromMs: number, untilMs: number): BudgetSpan => ({ fromMs, untilMs, endsMs: untilMs });
  if (unit === "minute" || unit === "hour") {
    const lengthMs = unit === "minute" ? MINUTE_MS : HOUR_MS;
    // That of one winter: clocks that change by half an hour must not part an hour, or let it be counted twice.
    const offsetMs = zone.offsetAt(Date.UTC(2026, 0));
    return (timeMs) => {
      const fromMs = Math.floor((timeMs + offsetMs) / lengthMs) * lengthMs - offsetMs;
      return span(fromMs, fromMs + lengthMs);
    };
  }
  return (timeMs) => {
    const day = new Date(Math.floor((timeMs + zone.offsetAt(timeMs)) / DAY_MS) * DAY_MS);
    const [year, month, date] = [day.getUTCFullYear(), day.getUTCMonth(), day.getUTCDate()];
    const monday = date - ((day.getUTCDay() + 6) % 7);
    const starts = (from: number, until: number) => span(zone.startOfDay(from), zone.startOfDay(until));
    if (unit === "month") return starts(Date.UTC(year, month, 1), Date.UTC(year, month + 1, 1));
    if (unit === "week") return starts(Date.UTC(year, month, monday), Date.UTC(year, month, monday + 7));
    return starts(Date.UTC(year, month, date), Date.UTC(year, month, date + 1));
  };
}

function zoneOf(timeZone: string) {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    ...{ year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" },
  } as Intl.DateTimeFormatOptions);

  /** What its clocks are ahead of UTC, in milliseconds. */
  function offsetAt(timeMs: number): number {
    const part: Record<string, number> = {};
    for (const { type, value } of format.formatToParts(timeMs)) part[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(timeMs / 1000) * 1000;
  }

  return {
    offsetAt,
    /** The first moment of a day that is given as its midnight in UTC. Where the clocks skip midnight, that is later. */
    startOfDay(midnight: number): number {
      const before = offsetAt(midnight - DAY_MS);
      const after = offsetAt(midnight + DAY_MS);
      const first = midnight - Math.max(before, after);
      return offsetAt(first) === midnight - first ? first : midnight - Math.min(before, after);
    },
  };
}
