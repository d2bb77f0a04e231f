import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AdminClient } from "../../test/support/admin-client.ts";
import { type ServedRoutes, serveRoutes, settingsOf } from "../../test/support/serve-routes.ts";
import { silentLogger } from "../logging/logger.ts";
import { HistoryStore } from "../metrics/history/store.ts";
import { metricsHistoryRoutes } from "./metrics-history.ts";

const NOW = Date.UTC(2026, 4, 1, 12);
const HOUR = 3_600_000;
const clock = { now: () => 0, wallTime: () => NOW };
const settings = () => settingsOf({});
const folder = mkdtempSync(join(tmpdir(), "admin-history-"));
const history = new HistoryStore({ path: join(folder, "metrics.db"), log: silentLogger() });

let served: ServedRoutes;
let without: ServedRoutes;
let admin: AdminClient;
beforeAll(async () => {
  for (const [age, value] of [
    [25, 1],
    [2, 2],
    [1, 3],
  ] as const) {
    history.write(NOW - age * HOUR, [{ metric: "up", labels: '{"backend":"a"}', value, kind: "gauge" }]);
  }
  served = await serveRoutes(metricsHistoryRoutes({ history, clock, settings }));
  without = await serveRoutes(metricsHistoryRoutes({ history: undefined, clock, settings }));
  admin = new AdminClient(served);
});
afterAll(async () => {
  await Promise.all([served.stop(), without.stop()]);
  history.close();
  rmSync(folder, { recursive: true, force: true });
});

const path = (query: Record<string, string>) => `/admin/metrics/history?${new URLSearchParams(query)}`;
const values = ({ samples }: Record<string, unknown>) => (samples as { value: number }[]).map(({ value }) => value);

describe("GET /admin/metrics/history", () => {
  test("by default the last 24 hours", async () => {
    expect(await admin.get(path({ metric: "up" }))).toEqual({
      metric: "up",
      from_ms: NOW - 24 * HOUR,
      to_ms: NOW,
      row_count: 2,
      limit: 10_000,
      samples: [
        { ts_ms: NOW - 2 * HOUR, labels: { backend: "a" }, value: 2, kind: "gauge" },
        { ts_ms: NOW - HOUR, labels: { backend: "a" }, value: 3, kind: "gauge" },
      ],
    });
  });

  test("from is inclusive, to exclusive; both encodings", async () => {
    const from = String(NOW - 25 * HOUR);
    const to = new Date(NOW - HOUR).toISOString();
    expect(values(await admin.get(path({ metric: "up", from, to })))).toEqual([1, 2]);
  });

  test("the limit, and its ceiling", async () => {
    expect(await admin.get(path({ metric: "up", limit: "1" }))).toMatchObject({ row_count: 1, limit: 1 });
    expect(await admin.get(path({ metric: "up", limit: "100001" }))).toMatchObject({ limit: 100_000 });
  });

  test("a family that nobody knows has no rows", async () => {
    expect(await admin.get(path({ metric: "none" }))).toMatchObject({ row_count: 0, samples: [] });
  });

  test.each([
    ["metric", {}],
    ["metric", { metric: "" }],
    ["metric", { metric: "x".repeat(257) }],
    ["from", { metric: "up", from: "5", to: "5" }],
    ["from", { metric: "up", from: "yesterday" }],
    ["to", { metric: "up", to: "99999999999999999" }],
    ["limit", { metric: "up", limit: "0" }],
    ["limit", { metric: "up", limit: "-1" }],
  ])("400 names '%s': %j", async (param, query) => {
    expect((await admin.refused(400, "GET", path(query))).param).toBe(param);
  });

  test("404 while no history is kept", async () => {
    const error = await new AdminClient(without).refused(404, "GET", path({ metric: "up" }));
    expect(error.message).toContain("metrics.persistence.enabled");
  });
});

describe("GET /admin/metrics/series", () => {
  const seriesPath = (query: Record<string, string>) => `/admin/metrics/series?${new URLSearchParams(query)}`;

  test("a metric at even steps, by the labels that are asked for", async () => {
    const from = String(NOW - 3 * HOUR);
    const answer = await admin.get(seriesPath({ metric: "up", from, step: "3600", by: "backend" }));
    expect(answer).toEqual({
      metric: "up",
      from_ms: NOW - 3 * HOUR,
      to_ms: NOW,
      step_ms: HOUR,
      kind: "gauge",
      series: [{ labels: { backend: "a" }, values: [2, 3, null] }],
    });
    const spread = await admin.get(seriesPath({ metric: "up", from: String(NOW - 300 * HOUR) }));
    expect(spread).toMatchObject({ step_ms: HOUR });
    expect(await admin.get(seriesPath({ metric: "none" }))).toMatchObject({ kind: null, series: [] });
  });

  test("bad parameters are refused with the name of the parameter", async () => {
    const cases: [Record<string, string>, string][] = [
      [{}, "metric"],
      [{ metric: "up", from: "2", to: "1" }, "from"],
      [{ metric: "up", step: "0" }, "step"],
      [{ metric: "up", step: "1m" }, "step"],
      [{ metric: "up", by: "a,b,c,d,e" }, "by"],
      [{ metric: "up", quantiles: "2" }, "quantiles"],
      [{ metric: "up", quantiles: "p95" }, "quantiles"],
      [{ metric: "up", limit: "all" }, "limit"],
    ];
    for (const [query, param] of cases) {
      expect((await admin.refused(400, "GET", seriesPath(query))).param).toBe(param);
    }
  });
});
