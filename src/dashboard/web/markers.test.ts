import { expect, test } from "bun:test";
import type { ConfigVersion } from "../../admin/config-schemas.ts";
import type { SeriesReport } from "../../admin/metrics-history.ts";
import { type ChartMarker, circuitMarkers, configMarkers, healthMarkers, markersOf } from "./markers.ts";

const reportOf = (...series: SeriesReport["series"]): SeriesReport => ({
  ...{ metric: "m", from_ms: 0, to_ms: 4_000, step_ms: 1_000, kind: "gauge", series },
});

test("a backend that goes away or comes back is a marker; one that was never seen otherwise is none", () => {
  const report = reportOf(
    { labels: { backend: "a" }, values: [1, 0, null, 1] },
    { labels: { backend: "b" }, values: [0, 0, 0, 0] },
    { labels: { backend: "c" }, values: [null, 1, 1, 1] },
  );
  expect(healthMarkers(report)).toEqual([
    { atMs: 2_000, tone: "bad", text: "a went away" },
    { atMs: 4_000, tone: "good", text: "a came back" },
  ]);
});

test("a circuit that opened or closed is a marker", () => {
  const report = reportOf(
    { labels: { backend: "a", to: "open" }, values: [0, 0.5, 0, 0] },
    { labels: { backend: "a", to: "half_open" }, values: [0, 0, 0.5, 0] },
    { labels: { backend: "a", to: "closed" }, values: [0, 0, 0, 0.5] },
  );
  expect(circuitMarkers(report).map(({ text }) => text)).toEqual([
    "The circuit of a opened",
    "The circuit of a closed",
  ]);
});

test("a version of the configuration is a marker with who made it", () => {
  const version: ConfigVersion = {
    ...{ version: 6, timestamp: "1970-01-01T00:00:02Z", sections_changed: ["retry", "keys"], source: "api" },
    ...{ user: "ann", description: null, rollback_available: true, changes: {}, replaced: [] },
  };
  expect(configMarkers([version])).toEqual([
    { atMs: 2_000, tone: "quiet", text: "Version 6: retry, keys (ann)", version: 6 },
  ]);
});

test("what falls into one step is one marker in the tone of the worst", () => {
  const markers: ChartMarker[] = [
    { atMs: 1_500, tone: "good", text: "b" },
    { atMs: 1_100, tone: "bad", text: "a", version: 3 },
    { atMs: 9_000, tone: "bad", text: "later" },
  ];
  expect(markersOf(markers, { from: 0, to: 4_000 }, 1_000)).toEqual([
    { atMs: 1_100, tone: "bad", text: "a; b", version: 3 },
  ]);
});
