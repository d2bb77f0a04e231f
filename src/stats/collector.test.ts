import { describe, expect, test } from "bun:test";
import { finishedRecord, type RequestEnd } from "../../test/support/request-records.ts";
import { costsView } from "../admin/costs-view.ts";
import { readWindow, STATS_WINDOW_NAMES } from "../admin/query.ts";
import { modelStatsView, requireStats, resetStats, statsView } from "../admin/stats-view.ts";
import { createObserver } from "../metrics/observer.ts";
import { StatsCollector } from "./collector.ts";
import { OTHER } from "./counted.ts";
import { COARSE } from "./percentiles.ts";
import type { RequestRecord } from "./request-record.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = Date.UTC(2026, 4, 1, 12);

function setUp(options: { maxModels?: number; maxBackends?: number; enabled?: boolean } = {}) {
  const time = { ms: 0 };
  const clock = { now: () => time.ms, wallTime: () => START + time.ms };
  const { enabled = true, ...limits } = options;
  const collector = new StatsCollector({
    settings: { enabled, retention_window: 7 * DAY, token_tracking: true, currency: "USD" },
    clock,
    priceOf: (model) => (model === "free" ? undefined : { inputTokens: 1, outputTokens: 10 }),
    ...limits,
  });
  const observer = createObserver(collector, undefined);
  /** A request, and its one attempt. */
  function count(finished: RequestRecord): void {
    const { backend, failure, status = 0, durationMs = 0 } = finished;
    const outcome = failure === undefined && status < 400 ? "succeeded" : "failed";
    if (backend !== undefined) observer.attempted(backend, outcome, failure, durationMs, undefined);
    observer.finished(finished);
  }
  return { time, collector, observer, count };
}

function request(changes: Partial<RequestEnd> = {}): RequestRecord {
  return finishedRecord({
    operation: "chat",
    model: "m1",
    backend: "b1",
    status: 200,
    outcome: changes.failure === undefined && (changes.status ?? 200) < 400 ? "succeeded" : "failed",
    durationMs: 100,
    stream: false,
    usage: { input: { total: 1000 }, output: { total: 50 } },
    attempts: 1,
    ...changes,
  });
}

const window = (name?: string) =>
  readWindow(new URLSearchParams(name === undefined ? {} : { window: name }), STATS_WINDOW_NAMES, START);

describe("statistics", () => {
  test("the record has the fields of the specification, and tells refusals from failures", () => {
    const { time, collector, count } = setUp();
    time.ms = 90_500;
    count(request());
    count(request({ durationMs: 300, status: 502, failure: "status_502", usage: undefined }));
    const view = statsView(collector, window());
    expect(view).toEqual({
      uptime_seconds: 90,
      window: "all",
      overall: {
        total_requests: 2,
        successful_requests: 1,
        failed_requests: 1,
        refused_requests: 0,
        avg_latency_ms: 100, // of the success,
        p50_latency_ms: 101, // the middle of its bucket
        p95_latency_ms: 101,
        p99_latency_ms: 101,
        total_prompt_tokens: 1000,
        total_completion_tokens: 50,
        total_tokens: 1050,
        tokens_per_sec_avg: 500,
      },
      models: [
        {
          model_id: "m1",
          total_requests: 2,
          successful_requests: 1,
          failed_requests: 1,
          refused_requests: 0,
          total_prompt_tokens: 1000,
          total_completion_tokens: 50,
          total_tokens: 1050,
          avg_latency_ms: 100,
          avg_tokens_per_sec: 500,
          last_used: new Date(START + 90_500).toISOString(),
        },
      ],
      backends: [
        {
          backend_name: "b1",
          total_requests: 2,
          successful_requests: 1,
          failed_requests: 1,
          refused_requests: 0,
          total_prompt_tokens: 1000,
          total_completion_tokens: 50,
          total_tokens: 1050,
          avg_latency_ms: 100,
          avg_tokens_per_sec: 500,
          last_used: new Date(START + 90_500).toISOString(),
          p50_latency_ms: 100,
          p95_latency_ms: 100,
          p99_latency_ms: 100,
          p50_first_token_ms: null,
          p95_first_token_ms: null,
          p99_first_token_ms: null,
        },
      ],
    });
  });

  test("an attempt counts at its backend, and is a failure only through the backend's fault", () => {
    const { collector, observer } = setUp();
    observer.attempted("gpu-1", "failed", "status_503", 5000, undefined);
    observer.attempted("gpu-2", "succeeded", undefined, 200, 50);
    observer.attempted("gpu-2", "client_left", "aborted", 9000, 70);
    observer.finished(request({ backend: "gpu-2", attempts: 2 }));
    const { backends, models } = statsView(collector, window());
    expect(models).toMatchObject([{ total_requests: 1, successful_requests: 1, failed_requests: 0 }]);
    expect(backends).toMatchObject([
      {
        backend_name: "gpu-2",
        total_requests: 2,
        successful_requests: 1,
        failed_requests: 0,
        total_tokens: 1050,
        avg_latency_ms: 200,
      },
      { backend_name: "gpu-1", total_requests: 1, successful_requests: 0, failed_requests: 1, avg_latency_ms: 0 },
    ]);
    const { p50_latency_ms, p50_first_token_ms, p99_first_token_ms } = backends[0] as (typeof backends)[number];
    expect(Math.abs(p50_latency_ms - 200) / 200).toBeLessThan(1 / 2 ** (COARSE + 1));
    expect(Math.abs((p50_first_token_ms as number) - 50) / 50).toBeLessThan(1 / 2 ** (COARSE + 1));
    expect(Math.abs((p99_first_token_ms as number) - 70) / 70).toBeLessThan(1 / 2 ** (COARSE + 1));
  });

  test("windows hold what is as young as they say", () => {
    const { time, collector, count } = setUp();
    const counted = () =>
      ["30m", "1h", "24h", "7d", undefined].map((name) => statsView(collector, window(name)).overall.total_requests);
    count(request());
    expect(counted()).toEqual([1, 1, 1, 1, 1]);
    time.ms = 29 * MINUTE;
    expect(counted()).toEqual([1, 1, 1, 1, 1]);
    time.ms = 31 * MINUTE;
    expect(counted()).toEqual([0, 1, 1, 1, 1]);
    time.ms = 62 * MINUTE;
    expect(counted()).toEqual([0, 0, 1, 1, 1]);
    time.ms = 25 * HOUR;
    count(request());
    expect(counted()).toEqual([1, 1, 1, 2, 2]);
    time.ms = 9 * DAY;
    expect(counted()).toEqual([0, 0, 0, 0, 2]);
    expect(statsView(collector, window("1h")).models).toEqual([]);
  });

  test("the retention window bounds what windows look back to, at once", () => {
    const { time, collector, count } = setUp();
    count(request());
    time.ms = 3 * HOUR;
    collector.apply({ ...collector.settings, retention_window: HOUR });
    expect(statsView(collector, window("24h")).overall.total_requests).toBe(0);
    expect(statsView(collector, window()).overall.total_requests).toBe(1);
  });

  test("an unknown window is refused with the ones that exist", () => {
    expect(() => window("5m")).toThrow("30m, 1h, 24h, 7d");
    expect(() => window("constructor")).toThrow();
    expect(() => window("")).toThrow();
  });

  test("names that clients invent do not fill the memory", () => {
    const { collector, count } = setUp({ maxModels: 3, maxBackends: 2 });
    for (let index = 0; index < 1000; index++) {
      count(request({ model: `invented-${index}`, backend: undefined, status: 404, usage: undefined }));
    }
    for (let index = 0; index < 10; index++) count(request({ model: `m${index}`, backend: `b${index}` }));
    const { models, backends, overall } = statsView(collector, window());
    expect(overall.total_requests).toBe(1010);
    expect(models.map(({ model_id }) => model_id)).toEqual([OTHER, "m0", "m1"]);
    expect(models[0]?.total_requests).toBe(1008);
    expect(backends.map(({ backend_name }) => backend_name)).toEqual([OTHER, "b0", "b1"]);
    // A model that is known is counted by name when no backend could be asked, too.
    count(request({ model: "m0", backend: undefined, status: 503 }));
    expect(modelStatsView(collector, window()).models.find(({ model_id }) => model_id === "m0")?.total_requests).toBe(
      2,
    );
  });

  test("tokens that no backend worked for are not counted", () => {
    const { collector, count } = setUp();
    count(request({ cache: "HIT", backend: undefined }));
    count(request({ isShared: true }));
    expect(statsView(collector, window()).overall).toMatchObject({ total_requests: 2, total_tokens: 0 });
    collector.apply({ ...collector.settings, token_tracking: false });
    count(request());
    expect(statsView(collector, window()).overall.total_tokens).toBe(0);
  });

  test("users that requests name themselves are counted by name up to a bound, and cost keys and models nothing", () => {
    const { collector, count } = setUp();
    for (let each = 0; each < 3_000; each++) count(request({ keyId: "a", endUser: `user-${each}` }));
    count(request({ keyId: "b", userId: "of the key", endUser: "of the request" }));
    const usage = (by: string) => costsView(collector, new URLSearchParams({ by })).rows ?? [];
    const users = usage("user");
    expect(users).toHaveLength(102);
    expect(users[0]).toMatchObject({ user_id: "(other)", requests: 2_900 });
    expect(users).toContainEqual(expect.objectContaining({ user_id: "of the key", requests: 1 }));
    expect(usage("key")).toMatchObject([
      { key_id: "a", requests: 3_000 },
      { key_id: "b", requests: 1 },
    ]);
    expect(usage("model")).toMatchObject([{ model_id: "m1", requests: 3_001 }]);
  });

  test("costs are kept per key and by the model that answered", () => {
    const { collector, count } = setUp();
    count(request({ keyId: "k1" }));
    count(request({ keyId: "k1", model: "free", answeredBy: "m2" }));
    count(request({ model: "free" }));
    const { total_cost, keys } = costsView(collector, new URLSearchParams());
    expect(total_cost).toBe(3);
    expect(keys?.map(({ key_id, model_id, cost }) => [key_id, model_id, cost])).toEqual([
      ["k1", "m1", 1.5],
      ["k1", "m2", 1.5],
      ["(none)", "free", 0],
    ]);
  });

  test("a reset clears everything, and counting goes on", () => {
    const { collector, count } = setUp();
    count(request());
    expect(resetStats(collector)).toMatchObject({ success: true });
    expect(statsView(collector, window()).overall.total_requests).toBe(0);
    count(request());
    const { overall, models, backends } = statsView(collector, window("1h"));
    expect([overall.total_requests, models.length, backends.length]).toEqual([1, 1, 1]);
  });

  test("the load of the last minutes", () => {
    const { time, collector, count } = setUp();
    time.ms = 10 * MINUTE;
    for (let index = 0; index < 60; index++) count(request(index < 15 ? { status: 500 } : {}));
    time.ms = 11 * MINUTE;
    expect(collector.load()).toEqual({ requests: 60, requestsPerSecond: 1, errorRate: 0.25 });
  });

  test("switched off, nothing is counted, and the view says why", () => {
    const { collector, count } = setUp({ enabled: false });
    count(request());
    expect(collector.overall(undefined).requests).toBe(0);
    expect(() => requireStats(collector)).toThrow("admin.stats.enabled");
  });
});
