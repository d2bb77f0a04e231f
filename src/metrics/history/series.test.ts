// Series of the metrics history: nothing that was counted is lost or counted twice, whatever the step.

import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { silentLogger } from "../../logging/logger.ts";
import type { MetricSample } from "../registry.ts";
import { quantileOf, readSeries, type SeriesQuery } from "./series.ts";
import { HistoryStore } from "./store.ts";

const folder = mkdtempSync(join(tmpdir(), "series-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const START = Date.UTC(2026, 4, 1, 12);
const MINUTE = 60_000;
let files = 0;

function newStore(): HistoryStore {
  return new HistoryStore({ path: join(folder, `${files++}.db`), log: silentLogger() });
}

const counter = (value: number, labels: Record<string, string> = {}): MetricSample => ({
  metric: "requests_total",
  labels: JSON.stringify(labels),
  value,
  kind: "counter",
});
const started = (seconds: number): MetricSample => ({
  metric: "process_start_time_seconds",
  labels: "{}",
  value: seconds,
  kind: "gauge",
});

function query(changes: Partial<SeriesQuery> = {}): SeriesQuery {
  return {
    ...{ metric: "requests_total", fromMs: START, toMs: START + 10 * MINUTE, stepMs: MINUTE },
    ...{ by: [], quantiles: [0.5], maxGapMs: 3 * MINUTE, most: 20 },
    ...changes,
  };
}

test("a counter is a rate per second, summed but for the labels that are asked for", async () => {
  const store = newStore();
  for (let minute = 0; minute <= 10; minute++) {
    store.write(START + minute * MINUTE, [
      counter(minute * 60, { model: "a", status: "200" }),
      counter(minute * 30, { model: "b", status: "200" }),
      counter(minute * 30, { model: "b", status: "500" }),
    ]);
  }
  const sum = await readSeries(store, query());
  expect(sum).toEqual({ kind: "rate", stepMs: MINUTE, lines: [{ labels: {}, values: Array(10).fill(2) }] });
  const byModel = await readSeries(store, query({ by: ["model"], stepMs: 5 * MINUTE }));
  expect(byModel?.lines).toEqual([
    { labels: { model: "a" }, values: [1, 1] },
    { labels: { model: "b" }, values: [1, 1] },
  ]);
  expect((await readSeries(store, query({ by: ["status"], most: 1 })))?.lines).toEqual([
    { labels: { status: "200" }, values: Array(10).fill(1.5) },
  ]);
  expect(await readSeries(store, query({ metric: "unheard_of" }))).toBeUndefined();
});

test("a gauge is its last value, and unknown where no snapshot is near", async () => {
  const store = newStore();
  const gauge = (value: number): MetricSample => ({ metric: "open", labels: "{}", value, kind: "gauge" });
  for (const minute of [1, 2, 8, 9, 10]) store.write(START + minute * MINUTE, [gauge(minute)]);
  const series = await readSeries(store, query({ metric: "open" }));
  expect(series).toEqual({
    kind: "gauge",
    stepMs: MINUTE,
    lines: [{ labels: {}, values: [1, 2, 2, 2, 2, null, null, 8, 9, 10] }],
  });
});

test("of the time in which no gateway was running nothing is known", async () => {
  const store = newStore();
  for (const minute of [0, 1, 2, 7, 8, 9, 10]) {
    store.write(START + minute * MINUTE, [
      counter(minute < 5 ? 60 * minute : 60 * (minute - 6)),
      started(minute < 5 ? 1 : 2),
    ]);
  }
  expect((await readSeries(store, query()))?.lines[0]?.values).toEqual([1, 1, null, null, null, null, null, 1, 1, 1]);
});

test("a long step is known though its snapshots at both ends are far apart", async () => {
  const store = newStore();
  for (let minute = 3; minute <= 9; minute++) store.write(START + minute * MINUTE, [counter(60 * minute)]);
  const series = await readSeries(store, query({ stepMs: 10 * MINUTE, maxGapMs: 2 * MINUTE }));
  expect(series?.lines[0]?.values).toEqual([1]);
});

test("a histogram is its quantiles, of what was observed within each step", async () => {
  const store = newStore();
  const bucket = (le: string, value: number): MetricSample => ({
    metric: "seconds",
    labels: JSON.stringify({ le }),
    value,
    kind: "histogram_bucket",
  });
  for (let minute = 0; minute <= 4; minute++) {
    const slow = Math.max(0, minute - 2) * 100;
    const fast = Math.min(minute, 2) * 100;
    store.write(START + minute * MINUTE, [
      bucket("1", fast),
      bucket("2", fast + slow),
      bucket("+Inf", fast + slow),
      { metric: "seconds", labels: "{}", value: 1e6, kind: "histogram_sum" },
    ]);
  }
  const series = await readSeries(
    store,
    query({ metric: "seconds", toMs: START + 4 * MINUTE, stepMs: 2 * MINUTE, quantiles: [0.5, 1] }),
  );
  expect(series).toEqual({
    kind: "quantile",
    stepMs: 2 * MINUTE,
    lines: [
      { labels: { quantile: "1" }, values: [1, 2] },
      { labels: { quantile: "0.5" }, values: [0.5, 1.5] },
    ],
  });
});

test("property: over any step, and over restarts, the steps hold what was counted", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          more: fc.nat(1_000),
          restarts: fc.boolean(),
          afterMs: fc.integer({ min: MINUTE / 2, max: MINUTE }),
        }),
        {
          minLength: 2,
          maxLength: 40,
        },
      ),
      fc.integer({ min: 1, max: 60 }),
      async (snapshots, steps) => {
        const store = newStore();
        let [atMs, value, sum, start] = [START, 0, 0, 1];
        store.write(atMs, [counter(value), started(start)]);
        for (const { more, restarts, afterMs } of snapshots) {
          atMs += afterMs;
          if (restarts) [value, start] = [0, start + 1];
          value += more;
          sum += more;
          store.write(atMs, [counter(value), started(start)]);
        }
        const stepMs = Math.ceil((atMs - START) / steps);
        const series = await readSeries(store, query({ toMs: atMs, stepMs }));
        const total = (series?.lines[0]?.values ?? []).reduce<number>((all, rate, index) => {
          const lengthMs = Math.min(START + (index + 1) * stepMs, atMs) - (START + index * stepMs);
          return all + ((rate ?? 0) * lengthMs) / 1_000;
        }, 0);
        expect(total).toBeCloseTo(sum, 3);
        store.close();
      },
    ),
    { numRuns: 60 },
  );
});

test("quantiles are those of Prometheus", () => {
  const buckets = new Map([
    ["0.1", 10],
    ["0.5", 30],
    ["+Inf", 40],
  ]);
  expect(quantileOf(buckets, 0.25)).toBeCloseTo(0.1);
  expect(quantileOf(buckets, 0.5)).toBeCloseTo(0.3);
  expect(quantileOf(buckets, 0.9)).toBe(0.5);
  expect(quantileOf(new Map([["+Inf", 0]]), 0.5)).toBeNull();
});
