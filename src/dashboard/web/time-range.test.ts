import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  fieldTime,
  isLive,
  PRESETS,
  parseRange,
  rangeLabel,
  rangeText,
  spanOf,
  zoomed,
  zoomedOut,
} from "./time-range.ts";

const NOW = new Date(2026, 10, 25, 14, 30).getTime();
const MINUTE = 60_000;

describe("a time range", () => {
  test("is read from the address, and the default where it makes no sense", () => {
    expect(parseRange("15m")).toEqual({ kind: "last", ms: 15 * MINUTE });
    expect(parseRange("today")).toEqual({ kind: "since", start: "today" });
    expect(parseRange("1000-61000")).toEqual({ kind: "span", from: 1_000, to: 61_000 });
    for (const text of [null, "", "1y", "0m", "2-1", "1-2", "constructor", "-5m"]) {
      expect(parseRange(text)).toEqual({ kind: "last", ms: 60 * MINUTE });
    }
  });

  test("has a span and words", () => {
    expect(spanOf(parseRange("5m"), NOW)).toEqual({ from: NOW - 5 * MINUTE, to: NOW });
    expect(spanOf(parseRange("today"), NOW).from).toBe(new Date(2026, 10, 25).getTime());
    expect(spanOf(parseRange("this_week"), NOW).from).toBe(new Date(2026, 10, 23).getTime());
    expect(spanOf(parseRange("this_month"), NOW).from).toBe(new Date(2026, 10, 1).getTime());
    expect(["5m", "24h", "7d", "today"].map((text) => rangeLabel(parseRange(text)))).toEqual([
      "Last 5 min",
      "Last 24 h",
      "Last 7 d",
      "Today",
    ]);
    expect(rangeLabel({ kind: "span", from: NOW, to: NOW + MINUTE })).toBe("2026-11-25 14:30:00 – 14:31:00");
    expect(fieldTime(NOW)).toBe("2026-11-25T14:30");
  });

  test("moves with the present, but for a span", () => {
    expect(PRESETS.every((text) => isLive(parseRange(text)))).toBe(true);
    expect(isLive(parseRange("1000-61000"))).toBe(false);
  });

  test("property: what the address holds is read again as it was", () => {
    fc.assert(
      fc.property(fc.nat(1_000_000), fc.integer({ min: 10_000, max: 1e10 }), (from, length) => {
        const range = { kind: "span", from, to: from + length } as const;
        expect(parseRange(rangeText(range))).toEqual(range);
      }),
    );
    for (const text of PRESETS) expect(rangeText(parseRange(text))).toBe(text);
  });

  test("is zoomed by marking, from either side, and back out around its middle", () => {
    expect(zoomed(90_000, 10_000)).toEqual({ kind: "span", from: 10_000, to: 90_000 });
    expect(zoomed(10_000, 10_500)).toBeUndefined();
    expect(zoomedOut({ from: 100, to: 200 }, 220)).toEqual({ kind: "span", from: 50, to: 220 });
  });
});
