import { expect, test } from "bun:test";
import type { SeriesReport } from "../../admin/metrics-history.ts";
import { linesOf, timesOf, totalOf } from "./reports.ts";

const report: SeriesReport = {
  ...{ metric: "requests", from_ms: 0, to_ms: 2_500, step_ms: 1_000, kind: "rate" },
  series: [
    { labels: { status: "200" }, values: [4, null, 2] },
    { labels: { status: "500" }, values: [1, null, null] },
  ],
};

test("series are summed where something is known", () => {
  expect(timesOf(report)).toEqual([1_000, 2_000, 2_500]);
  expect(linesOf(report)).toEqual([5, undefined, 2]);
  expect(linesOf(report, ({ status }) => status === "500")).toEqual([1, undefined, undefined]);
  expect(
    linesOf(
      report,
      ({ status }) => status === "500",
      (value) => value * 60,
    ),
  ).toEqual([60, undefined, undefined]);
});

test("a kind that never came is 0 where others are known", () => {
  expect(linesOf(report, ({ status }) => status === "404")).toEqual([0, undefined, 0]);
});

test("a total counts the last step for as long as it is", () => {
  expect(totalOf(report)).toBe(6);
});
