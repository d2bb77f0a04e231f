// What happened, in buckets of time.

import { expect, test } from "bun:test";
import { createSeries, emptyBucket, inSteps } from "./series.ts";

const one = { ...emptyBucket(), total: 1, durationMs: 50, longestMs: 50, firstBytes: 1, firstByteSumMs: 10 };

test("adds up in buckets, the oldest first, without the one that is not over", () => {
  const series = createSeries({ bucketMs: 1_000, buckets: 3 });
  series.knownSince(0);
  series.add(7_100, one);
  series.add(7_900, { ...one, longestMs: 80, durationMs: 80 });
  series.add(8_000, { ...one, failed: 1 });
  series.add(9_500, one);
  const points = series.points(9_600);
  expect(points.map((point) => [point?.atMs, point?.total, point?.failed])).toEqual([
    [6_000, 0, 0],
    [7_000, 2, 0],
    [8_000, 1, 1],
  ]);
  expect(points[1]).toMatchObject({ durationMs: 130, longestMs: 80, firstBytes: 2, firstByteSumMs: 20 });
});

test("what is too old is forgotten", () => {
  const series = createSeries({ bucketMs: 1_000, buckets: 2 });
  series.knownSince(0);
  series.add(1_000, one);
  expect(series.points(3_500).map((point) => point?.total)).toEqual([1, 0]);
  expect(series.points(9_000).map((point) => point?.total)).toEqual([0, 0]);
  expect(series.points(3_500).map((point) => point?.total)).toEqual([0, 0]);
});

test("of times from before anything was known nothing is told, and of none after a new beginning", () => {
  const series = createSeries({ bucketMs: 1_000, buckets: 4 });
  expect(series.points(9_000)).toEqual([undefined, undefined, undefined, undefined]);
  series.knownSince(7_500);
  expect(series.points(9_000).map((point) => point?.atMs)).toEqual([undefined, undefined, 7_000, 8_000]);
  series.clear();
  expect(series.points(9_000).filter(Boolean)).toEqual([]);
});

test("in longer steps, the newest first, without those that are known in part", () => {
  const series = createSeries({ bucketMs: 1_000, buckets: 7 });
  series.knownSince(1_000);
  for (const atMs of [1_000, 2_500, 3_000, 4_200, 6_000]) series.add(atMs, { ...one, longestMs: atMs });
  const steps = inSteps(series.points(7_000), 1_000, 2_000);
  expect(steps.map(({ atMs, total, longestMs }) => [atMs, total, longestMs])).toEqual([
    [4_000, 1, 4_200],
    [2_000, 2, 3_000],
  ]);
});
