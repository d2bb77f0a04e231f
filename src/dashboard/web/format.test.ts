// Numbers, times and names as people read them.

import { describe, expect, test } from "bun:test";
import {
  ago,
  bytes,
  count,
  dateTime,
  duration,
  grouped,
  longDuration,
  money,
  percent,
  percentile,
  plural,
  rate,
  words,
} from "./format.ts";

test.each([
  [0, "0"],
  [999, "999"],
  [1_234, "1\u202f234"],
  [12_345, "12.3k"],
  [20_000, "20k"],
  [999_499, "999k"],
  [999_500, "1M"],
  [4_560_000, "4.56M"],
  [1_200_000_000, "1.2G"],
])("count %d", (value, text) => expect(count(value)).toBe(text));

test("grouped keeps every digit", () => {
  expect([0, 12, 1_000, 1_234_567].map(grouped)).toEqual(["0", "12", "1\u202f000", "1\u202f234\u202f567"]);
});

test.each([
  [0, "0"],
  [0.01, "<0.1"],
  [0.4, "0.4"],
  [12.54, "12.5"],
  [99.96, "100"],
  [12_000, "12k"],
])("rate %d", (value, text) => expect(rate(value)).toBe(text));

test.each([
  [0, "0 ms"],
  [0.4, "0.4 ms"],
  [9.96, "10 ms"],
  [85, "85 ms"],
  [999.4, "999 ms"],
  [999.5, "1.00 s"],
  [1_254, "1.25 s"],
  [12_340, "12.3 s"],
  [59_960, "1 min"],
  [125_000, "2 min 5 s"],
])("duration %d", (ms, text) => expect(duration(ms)).toBe(text));

test("long durations have two units at most", () => {
  expect([5, 60, 3_600, 12_000, 180_000].map(longDuration)).toEqual(["5 s", "1 min", "1 h", "3 h 20 min", "2 d 2 h"]);
});

describe("percent", () => {
  test.each([
    [0, "0 %"],
    [0.00001, "<0.01 %"],
    [0.0004, "0.04 %"],
    [0.025, "2.5 %"],
    [0.374, "37 %"],
    [1, "100 %"],
  ])("%d", (share, text) => expect(percent(share)).toBe(text));

  test("what is not everything is not 100", () => expect(percent(0.9999)).toBe("99.9 %"));
});

test.each([
  [0, "0.00"],
  [0.00001, "<0.0001"],
  [0.0042, "0.0042"],
  [1.5, "1.50"],
  [12_345.678, "12\u202f345.68"],
])("money %d", (value, text) => expect(money(value)).toBe(text));

test.each([
  [12, "12 B"],
  [1_536, "1.5 KiB"],
  [900 * 1024 * 1024, "900 MiB"],
  [3 * 1024 ** 3, "3.0 GiB"],
])("bytes %d", (value, text) => expect(bytes(value)).toBe(text));

test("ago", () => {
  const nowMs = 10_000_000_000;
  const texts = [0, 42_000, 300_000, 7_200_000, 200_000_000].map((ms) => ago(nowMs - ms, nowMs));
  expect(texts).toEqual(["now", "42 s ago", "5 min ago", "2 h ago", "2 d ago"]);
  expect(ago(nowMs + 5_000, nowMs)).toBe("now");
});

test("dateTime is in local time", () => {
  expect(dateTime(new Date(2026, 2, 1, 4, 3, 7).getTime())).toBe("2026-03-01 04:03:07");
});

test("plural and words", () => {
  expect([plural(1, "request"), plural(2, "request"), plural(2, "entry", "entries")]).toEqual([
    "1 request",
    "2 requests",
    "2 entries",
  ]);
  expect(words("warming_up")).toBe("warming up");
});

test("percentile", () => {
  const values = Array.from({ length: 100 }, (_, index) => 100 - index);
  expect([percentile(values, 0.5), percentile(values, 0.95), percentile([7], 0.99), percentile([], 0.5)]).toEqual([
    50,
    95,
    7,
    undefined,
  ]);
});
