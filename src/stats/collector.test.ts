import { describe, expect, test } from "bun:test";
import { createObserver } from "../metrics/observer.ts";
import { StatsCollector } from "./collector.ts";
import { type FinishedRequest, OTHER } from "./finished-request.ts";
import { costsView, modelStatsView, readWindow, requireStats, resetStats, statsView } from "./view.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = Date.UTC(2026, 4, 1, 12);

function setUp(options: { maxModels?: number; maxBackends?: number; enabled?: boolean } = {}) {
  const time = { ms: 0 };
  const clock = { now: () => time.ms, wallTime: () => START + time.ms };
  const { enabled = true, ...limits } = options;
  const collector = new StatsCollector({
    settings: { enabled, retention_window: 7 * DAY, token_tracking: true },
    clock,
    priceOf: (model) => (model === "free" ? undefined : { inputTokens: 1, outputTokens: 10 }),
    ...limits,
  });
  return { time, collector, observer: createObserver(collector, undefined) };
}

function request(changes: Partial<FinishedRequest> = {}): FinishedRequest {
  return {
    operation: "chat",
    model: "m1",
    backend: "b1",
    status: 200,
    durationMs: 100,
    stream: false,
    usage: { input: { total: 1000 }, output: { total: 50 } },
    attempts: 1,
    ...changes,
  };
}

const window = (name?: string) => readWindow(new URLSearchParams(name === undefined ? {} : { window: name }));

describe("statistics", () => {
  test("the record has exactly the fields of the specification", () => {
    const { time, collector, observer } = setUp();
    time.ms = 90_500;
    observer.finished(request());
    observer.finished(request({ durationMs: 300, status: 502, failure: "status_502", usage: undefined }));
    const view = statsView(collector, window());
    expect(view).toEqual({
      uptime_seconds: 90,
      window: "all",
      overall: {
        total_requests: 2,
        successful_requests: 1,
        failed_requests: 1,
        avg_latency_ms: 200,
        p50_latency_ms: 101, // the middle of its bucket
        p95_latency_ms: 300,
        p99_latency_ms: 300,
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
          total_prompt_tokens: 1000,
          total_completion_tokens: 50,
          total_tokens: 1050,
          avg_latency_ms: 200,
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
          total_prompt_tokens: 1000,
          total_completion_tokens: 50,
          total_tokens: 1050,
          avg_latency_ms: 200,
          avg_tokens_per_sec: 500,
          last_used: new Date(START + 90_500).toISOString(),
        },
      ],
    });
  });

  test("windows hold what is as young as they say", () => {
    const { time, collector, observer } = setUp();
    const counted = () =>
      ["30m", "1h", "24h", "7d", undefined].map((name) => statsView(collector, window(name)).overall.total_requests);
    observer.finished(request());
    expect(counted()).toEqual([1, 1, 1, 1, 1]);
    time.ms = 29 * MINUTE;
    expect(counted()).toEqual([1, 1, 1, 1, 1]);
    time.ms = 31 * MINUTE;
    expect(counted()).toEqual([0, 1, 1, 1, 1]);
    time.ms = 62 * MINUTE;
    expect(counted()).toEqual([0, 0, 1, 1, 1]);
    time.ms = 25 * HOUR;
    observer.finished(request());
    expect(counted()).toEqual([1, 1, 1, 2, 2]);
    time.ms = 9 * DAY;
    expect(counted()).toEqual([0, 0, 0, 0, 2]);
    expect(statsView(collector, window("1h")).models).toEqual([]);
  });

  test("the retention window bounds what windows look back to, at once", () => {
    const { time, collector, observer } = setUp();
    observer.finished(request());
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
    const { collector, observer } = setUp({ maxModels: 3, maxBackends: 2 });
    for (let index = 0; index < 1000; index++) {
      observer.finished(request({ model: `invented-${index}`, backend: undefined, status: 404, usage: undefined }));
    }
    for (let index = 0; index < 10; index++) observer.finished(request({ model: `m${index}`, backend: `b${index}` }));
    const { models, backends, overall } = statsView(collector, window());
    expect(overall.total_requests).toBe(1010);
    expect(models.map(({ model_id }) => model_id)).toEqual([OTHER, "m0", "m1"]);
    expect(models[0]?.total_requests).toBe(1008);
    expect(backends.map(({ backend_name }) => backend_name)).toEqual([OTHER, "b0", "b1"]);
    // A model that is known is counted by name when no backend could be asked, too.
    observer.finished(request({ model: "m0", backend: undefined, status: 503 }));
    expect(modelStatsView(collector, window()).models.find(({ model_id }) => model_id === "m0")?.total_requests).toBe(
      2,
    );
  });

  test("tokens that no backend worked for are not counted", () => {
    const { collector, observer } = setUp();
    observer.finished(request({ cache: "HIT", backend: undefined }));
    observer.finished(request({ shared: true }));
    expect(statsView(collector, window()).overall).toMatchObject({ total_requests: 2, total_tokens: 0 });
    collector.apply({ ...collector.settings, token_tracking: false });
    observer.finished(request());
    expect(statsView(collector, window()).overall.total_tokens).toBe(0);
  });

  test("costs are kept per key and by the model that answered", () => {
    const { collector, observer } = setUp();
    observer.finished(request({ keyId: "k1" }));
    observer.finished(request({ keyId: "k1", model: "free", answeredBy: "m2" }));
    observer.finished(request({ model: "free" }));
    const { total_cost, keys } = costsView(collector);
    expect(total_cost).toBe(3);
    expect(keys.map(({ key_id, model_id, cost }) => [key_id, model_id, cost])).toEqual([
      ["k1", "m1", 1.5],
      ["k1", "m2", 1.5],
      ["(none)", "free", 0],
    ]);
  });

  test("a reset clears everything, and counting goes on", () => {
    const { collector, observer } = setUp();
    observer.finished(request());
    expect(resetStats(collector)).toMatchObject({ success: true });
    expect(statsView(collector, window()).overall.total_requests).toBe(0);
    observer.finished(request());
    const { overall, models, backends } = statsView(collector, window("1h"));
    expect([overall.total_requests, models.length, backends.length]).toEqual([1, 1, 1]);
  });

  test("the load of the last minutes", () => {
    const { time, collector, observer } = setUp();
    time.ms = 10 * MINUTE;
    for (let index = 0; index < 60; index++) observer.finished(request(index < 15 ? { status: 500 } : {}));
    time.ms = 11 * MINUTE;
    expect(collector.load()).toEqual({ requests: 60, requestsPerSecond: 1, errorRate: 0.25 });
  });

  test("switched off, nothing is counted, and the view says why", () => {
    const { collector, observer } = setUp({ enabled: false });
    observer.finished(request());
    expect(collector.overall(undefined).requests).toBe(0);
    expect(() => requireStats(collector)).toThrow("admin.stats.enabled");
  });
});
