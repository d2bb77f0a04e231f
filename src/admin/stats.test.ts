import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { AdminClient } from "../../test/support/admin-client.ts";
import { finishedRecord } from "../../test/support/request-records.ts";
import { type ServedRoutes, serveRoutes } from "../../test/support/serve-routes.ts";
import { createObserver } from "../metrics/observer.ts";
import { StatsCollector } from "../stats/collector.ts";
import { statsRoutes } from "./stats.ts";

const START = Date.UTC(2026, 4, 1, 12);
const HOUR = 3_600_000;
const time = { ms: 0 };
const SETTINGS = { enabled: true, retention_window: 7 * 24 * HOUR, token_tracking: true, currency: "USD" };
const collector = new StatsCollector({
  settings: SETTINGS,
  clock: { now: () => time.ms, wallTime: () => START + time.ms },
  priceOf: () => ({ inputTokens: 1, outputTokens: 10 }),
});
const observer = createObserver(collector, undefined);

let served: ServedRoutes;
let admin: AdminClient;
beforeAll(async () => {
  served = await serveRoutes(statsRoutes({ collector }));
  admin = new AdminClient(served);
});
afterAll(() => served.stop());

function count(backend: string): void {
  const usage = { input: { total: 1000 }, output: { total: 50 } };
  observer.attempted(backend, "succeeded", undefined, 100, undefined);
  const facts = { operation: "chat", model: "m", backend, usage, attempts: 1, keyId: "team" };
  observer.finished(finishedRecord({ ...facts, status: 200, outcome: "succeeded", durationMs: 100 }));
}

describe("statistics", () => {
  test("the whole record, and its parts alone", async () => {
    count("a");
    time.ms += 2 * HOUR;
    count("b");
    const whole = await admin.get("/admin/stats");
    expect(whole).toMatchObject({ uptime_seconds: 7200, window: "all", overall: { total_requests: 2 } });
    expect(Object.keys(whole)).toEqual(["uptime_seconds", "window", "overall", "models", "backends"]);
    expect(await admin.get("/admin/stats/models")).toEqual({
      uptime_seconds: 7200,
      window: "all",
      models: whole.models,
    });
    expect(await admin.get("/admin/stats/backends?window=1h")).toEqual({
      uptime_seconds: 7200,
      window: "1h",
      backends: [expect.objectContaining({ backend_name: "b", total_requests: 1 })],
    });
  });

  test.each(["30m", "1h", "24h", "7d"])("the window %s", async (window) => {
    const { overall, ...frame } = await admin.get(`/admin/stats?window=${window}`);
    expect(frame).toMatchObject({ window });
    expect(overall).toMatchObject({ total_requests: window.endsWith("m") || window === "1h" ? 1 : 2 });
  });

  test.each(["", "31m", "7D", "1h,24h", "constructor"])("the window '%s' is refused with its name", async (window) => {
    for (const part of ["", "/models", "/backends"]) {
      expect(await admin.refused(400, "GET", `/admin/stats${part}?window=${window}`)).toMatchObject({
        param: "window",
        type: "invalid_request_error",
      });
    }
  });

  test("costs per key and model", async () => {
    expect(await admin.get("/admin/stats/costs")).toEqual({
      total_cost: 3,
      currency: "USD",
      unpriced_models: [],
      keys: [{ key_id: "team", model_id: "m", requests: 2, prompt_tokens: 2000, completion_tokens: 100, cost: 3 }],
    });
  });

  test("answers are not kept by anyone", async () => {
    const { headers } = await admin.send("GET", "/admin/stats");
    expect(headers.get("cache-control")).toBe("no-store");
  });

  test("reset forgets everything but the uptime", async () => {
    expect(await admin.ok("POST", "/admin/stats/reset")).toEqual({ success: true, message: expect.any(String) });
    expect(await admin.get("/admin/stats")).toMatchObject({
      uptime_seconds: 7200,
      overall: { total_requests: 0, p99_latency_ms: 0 },
      models: [],
      backends: [],
    });
    expect(await admin.get("/admin/stats/costs")).toEqual({
      total_cost: 0,
      currency: "USD",
      unpriced_models: [],
      keys: [],
    });
    await admin.refused(405, "GET", "/admin/stats/reset");
  });

  test("switched off, everything is 404 and says how to switch it on", async () => {
    collector.apply({ ...SETTINGS, enabled: false });
    for (const path of ["/admin/stats", "/admin/stats/models", "/admin/stats/backends", "/admin/stats/costs"]) {
      expect((await admin.refused(404, "GET", path)).message).toContain("admin.stats.enabled");
    }
    await admin.refused(404, "POST", "/admin/stats/reset");
    collector.apply(SETTINGS);
  });
});
