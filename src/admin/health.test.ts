import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { AdminClient } from "../../test/support/admin-client.ts";
import { finishedRecord } from "../../test/support/request-records.ts";
import { type ServedRoutes, serveRoutes, settingsOf } from "../../test/support/serve-routes.ts";
import { createObserver } from "../metrics/observer.ts";
import { VERSION } from "../names.ts";
import { StatsCollector } from "../stats/collector.ts";
import { type BackendHealth, healthRoutes, type ProcessUsage } from "./health.ts";

const START = Date.UTC(2026, 4, 1, 12);
const GOOD: BackendHealth = {
  backend: { enabled: true },
  drain: undefined,
  askable: true,
  circuit: "closed",
  models: ["m"],
};

const time = { ms: 0 };
const clock = { now: () => time.ms, wallTime: () => START + time.ms };
const collector = new StatsCollector({
  settings: { enabled: true, retention_window: 86_400_000, token_tracking: true, currency: "USD" },
  clock,
});
const observer = createObserver(collector, undefined);
let written: object;
let backends: BackendHealth[];
let usage: ProcessUsage;
let storageProblems: string[];

let served: ServedRoutes;
let admin: AdminClient;
beforeAll(async () => {
  served = await serveRoutes(
    healthRoutes({
      collector,
      settings: () => settingsOf(written),
      clock,
      backendStates: () => ({ configured: backends }),
      storageProblems: () => storageProblems,
      usage: () => usage,
    }),
  );
  admin = new AdminClient(served);
});
afterAll(() => served.stop());
beforeEach(() => {
  written = {};
  backends = [GOOD];
  storageProblems = [];
  usage = { memoryBytes: 64 * 1024 * 1024, cpuMs: 500, uptimeMs: 10_000 };
});

async function health(): Promise<{ status: number; body: Record<string, unknown>; services: Record<string, unknown> }> {
  const { status, body } = await admin.send("GET", "/admin/health");
  const services = Object.fromEntries(
    Object.entries(body.services as Record<string, { status: string }>).map(([name, service]) => [
      name,
      service.status,
    ]),
  );
  return { status, body, services };
}

const WELL = {
  backend_service: "healthy",
  model_service: "healthy",
  proxy_service: "healthy",
  health_service: "healthy",
  storage_service: "healthy",
};

describe("GET /admin/health", () => {
  test("has the fields of the specification", async () => {
    time.ms = 61_500;
    const { status, body } = await health();
    expect(status).toBe(200);
    expect(body).toEqual({
      status: "healthy",
      version: VERSION,
      uptime: 61,
      timestamp: new Date(START + 61_500).toISOString(),
      services: {
        backend_service: { status: "healthy", message: "Backends that can be asked: 1 of 1." },
        model_service: { status: "healthy", message: "Models that can be served: 1." },
        proxy_service: { status: "healthy", message: "Requests are answered." },
        health_service: { status: "healthy", message: "Backends are checked." },
        storage_service: { status: "healthy", message: "The data folder can be written." },
      },
      metrics: { requests_per_second: 0, error_rate: 0, memory_usage_mb: 64, cpu_usage_percent: 5 },
    });
  });

  test("unhealthy with 503 when nobody can be served", async () => {
    const down = { ...GOOD, askable: false };
    for (const rows of [
      [],
      [down],
      [down, down],
      [{ ...GOOD, backend: { enabled: false } }],
      [{ ...GOOD, drain: {} as BackendHealth["drain"] }],
    ]) {
      backends = rows;
      const { status, body, services } = await health();
      expect({ status, body }).toMatchObject({ status: 503, body: { status: "unhealthy" } });
      expect(services).toEqual({ ...WELL, backend_service: "unhealthy", model_service: "unhealthy" });
    }
    backends = [{ ...GOOD, models: [] }];
    expect(await health()).toMatchObject({ status: 503, services: { ...WELL, model_service: "unhealthy" } });
  });

  test("degraded when a part is down or a circuit is open; what is disabled does not count", async () => {
    const troubled: BackendHealth[] = [
      { ...GOOD, askable: false },
      { ...GOOD, circuit: "open" },
      { ...GOOD, circuit: "half_open" },
    ];
    for (const other of troubled) {
      backends = [GOOD, other];
      expect(await health()).toMatchObject({
        status: 200,
        body: { status: "degraded" },
        services: { ...WELL, backend_service: "degraded" },
      });
    }
    backends = [GOOD, { ...GOOD, backend: { enabled: false }, askable: false }];
    expect(await health()).toMatchObject({ status: 200, body: { status: "healthy" } });
  });

  test("degraded while most requests fail, and well again afterwards", async () => {
    const request = { operation: "chat", model: "m", backend: "a", durationMs: 10, stream: false, attempts: 1 };
    const fail = (): number =>
      observer.finished(finishedRecord({ ...request, status: 502, outcome: "failed", failure: "connect" }));
    for (let each = 0; each < 9; each++) fail();
    expect(await health()).toMatchObject({ body: { status: "healthy", metrics: { error_rate: 1 } } });
    for (let each = 9; each < 60; each++) fail();
    const { body } = await health();
    expect(body).toMatchObject({
      status: "degraded",
      services: { proxy_service: { status: "degraded", message: "100 % of the latest requests failed." } },
      metrics: { error_rate: 1 },
    });
    expect((body.metrics as { requests_per_second: number }).requests_per_second).toBeGreaterThan(0.5);
    time.ms += 3 * 60_000;
    expect(await health()).toMatchObject({ body: { status: "healthy" } });
  });

  test("health checks that are off are no trouble", async () => {
    written = { health_checks: { enabled: false } };
    expect(await health()).toMatchObject({
      status: 200,
      body: { status: "healthy" },
      services: { ...WELL, health_service: "disabled" },
    });
  });

  test("CPU is measured since the last time, at least a second apart", async () => {
    const percentAt = async (cpuMs: number, uptimeMs: number) => {
      usage = { ...usage, cpuMs, uptimeMs };
      return ((await health()).body.metrics as { cpu_usage_percent: number }).cpu_usage_percent;
    };
    await percentAt(1_000, 20_000);
    expect(await percentAt(1_500, 22_000)).toBe(25);
    expect(await percentAt(1_999, 22_500)).toBe(25);
    expect(await percentAt(3_500, 24_000)).toBe(100);
  });
});
