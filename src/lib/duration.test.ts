// Duration texts: what they mean, what is none, and that writing and reading are inverse.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { DURATION_PATTERN, formatDuration, parseDuration } from "./duration.ts";

describe("reading a duration", () => {
  test.each([
    ["250ms", 250],
    ["30s", 30_000],
    ["5m", 300_000],
    ["1h", 3_600_000],
    ["7d", 604_800_000],
    ["1m30s", 90_000],
    ["1h1m1s1ms", 3_661_001],
    ["1.5s", 1_500],
    ["0s", 0],
    ["0.0004s", 0],
    ["1ms1m", 60_001],
  ])("%s is %d milliseconds", (text, durationMs) => {
    expect(parseDuration(text)).toBe(durationMs);
  });

  test.each([
    [""],
    ["5"],
    ["s"],
    ["5 s"],
    ["-5s"],
    ["+5s"],
    [".5s"],
    ["5.s"],
    ["5S"],
    ["5min"],
    ["5s "],
    ["1e3s"],
    ["5s,"],
  ])("%j is none", (text) => {
    expect(parseDuration(text)).toBeUndefined();
    expect(new RegExp(DURATION_PATTERN).test(text)).toBe(false);
  });
});

describe("writing a duration", () => {
  test.each([
    [0, "0ms"],
    [1, "1ms"],
    [999, "999ms"],
    [1_000, "1s"],
    [1_500, "1500ms"],
    [90_000, "90s"],
    [300_000, "5m"],
    [3_600_000, "1h"],
    [86_400_000, "1d"],
    [90_000_000, "25h"],
  ])("%d milliseconds are %s", (durationMs, text) => {
    expect(formatDuration(durationMs)).toBe(text);
  });

  test("property: what is written reads back the same", () => {
    const unit = fc.constantFrom(1, 1_000, 60_000, 3_600_000, 86_400_000);
    fc.assert(
      fc.property(fc.nat({ max: 100_000 }), unit, (amount, unitMs) => {
        expect(parseDuration(formatDuration(amount * unitMs))).toBe(amount * unitMs);
      }),
    );
  });
});
