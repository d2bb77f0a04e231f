// Windows of budgets: where days begin and end, clocks that change among them, and durations up to now.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { CALENDAR_UNITS } from "../config/sections/budgets.ts";
import { spansOf } from "./windows.ts";

const ZONES = [
  ...["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Asia/Beirut", "America/Sao_Paulo"],
  ...["Africa/Cairo", "Australia/Lord_Howe", "Pacific/Apia", "America/Havana", "Asia/Gaza"],
];

function written(window: Parameters<typeof spansOf>[0], zone: string, time: string): string[] {
  const { fromMs, untilMs } = spansOf(window, zone)(Date.parse(time));
  return [fromMs, untilMs].map((ms) => new Date(ms).toISOString().replace(".000Z", "Z"));
}

describe("windows of the calendar", () => {
  test("begin and end by the clocks of the time zone", () => {
    const time = "2026-03-31T22:30:00Z";
    expect(written({ unit: "month" }, "UTC", time)).toEqual(["2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"]);
    expect(written({ unit: "month" }, "Europe/Berlin", time)).toEqual(["2026-03-31T22:00:00Z", "2026-04-30T22:00:00Z"]);
    expect(written({ unit: "week" }, "UTC", time)).toEqual(["2026-03-30T00:00:00Z", "2026-04-06T00:00:00Z"]);
    expect(written({ unit: "day" }, "Asia/Kathmandu", time)).toEqual(["2026-03-31T18:15:00Z", "2026-04-01T18:15:00Z"]);
    expect(written({ unit: "hour" }, "Asia/Kathmandu", time)).toEqual(["2026-03-31T22:15:00Z", "2026-03-31T23:15:00Z"]);
  });

  test("a day has 23 or 25 hours when the clocks change", () => {
    const spring = written({ unit: "day" }, "Europe/Berlin", "2026-03-29T12:00:00Z");
    expect(spring).toEqual(["2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"]);
    const autumn = written({ unit: "day" }, "Europe/Berlin", "2026-10-25T12:00:00Z");
    expect(autumn).toEqual(["2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"]);
  });

  test("a day without a midnight begins with its first moment", () => {
    // Beirut, 2026-03-29: 00:00 is 01:00. Havana, 2026-11-01: 01:00 is 00:00 once more.
    const beirut = written({ unit: "day" }, "Asia/Beirut", "2026-03-29T12:00:00Z");
    expect(beirut).toEqual(["2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z"]);
    const havana = written({ unit: "day" }, "America/Havana", "2026-11-01T12:00:00Z");
    expect(havana).toEqual(["2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"]);
  });

  test("no two overlap, and there is no gap, in any zone at any time", () => {
    const times = fc.integer({ min: Date.UTC(1990, 0), max: Date.UTC(2050, 0) });
    const asked = fc.record({
      unit: fc.constantFrom(...CALENDAR_UNITS),
      zone: fc.constantFrom(...ZONES),
      timeMs: times,
    });
    fc.assert(
      fc.property(asked, ({ unit, zone, timeMs }) => {
        const { fromMs, untilMs, endsMs } = spansOf({ unit }, zone)(timeMs);
        expect(fromMs).toBeLessThanOrEqual(timeMs);
        expect(untilMs).toBeGreaterThan(timeMs);
        expect(endsMs).toBe(untilMs);
        expect(spansOf({ unit }, zone)(fromMs)).toEqual({ fromMs, untilMs, endsMs });
        expect(spansOf({ unit }, zone)(untilMs - 1)).toEqual({ fromMs, untilMs, endsMs });
        expect(spansOf({ unit }, zone)(untilMs).fromMs).toBe(untilMs);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("durations up to now", () => {
  test("what is spent counts for the whole duration at least, and at most a sixtieth longer", () => {
    const rollingMs = 86_400_000;
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4e12 }), fc.integer({ min: 1_000, max: rollingMs }), (timeMs, lengthMs) => {
        const { fromMs, untilMs, endsMs } = spansOf({ rollingMs: lengthMs }, "UTC")(timeMs);
        expect(fromMs <= timeMs && timeMs < untilMs).toBe(true);
        expect(endsMs - timeMs).toBeGreaterThan(lengthMs);
        expect(endsMs - timeMs).toBeLessThanOrEqual(lengthMs + Math.ceil(lengthMs / 60));
      }),
    );
  });
});

test("a reset parts the span that it lies in", () => {
  const resetAtMs = Date.parse("2026-05-10T12:00:00Z");
  const at = spansOf({ unit: "month" }, "UTC", resetAtMs);
  const endsMs = Date.parse("2026-06-01T00:00:00Z");
  expect(at(resetAtMs)).toEqual({ fromMs: resetAtMs, untilMs: endsMs, endsMs });
  expect(at(resetAtMs - 1)).toMatchObject({ fromMs: Date.parse("2026-05-01T00:00:00Z"), untilMs: resetAtMs });
});
