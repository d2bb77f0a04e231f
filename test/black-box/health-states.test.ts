// Health: the state table of the specification, driven by the behaviour of real engines.

import { expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import type { Answer, FakeBackend } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { failure, models } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

type HealthSection = NonNullable<ConfigDocument["health_checks"]>;
type BackendConfig = NonNullable<ConfigDocument["backends"]>[number];

function start(backend: FakeBackend, health: HealthSection = {}, more: Partial<BackendConfig> = {}): Promise<Gateway> {
  return startGateway({
    config: {
      health_checks: { interval: "100ms", warmup_check_interval: "50ms", ...health },
      retry: { max_attempts: 1 },
      backends: [{ name: "engine", url: backend.url, models: ["m"], ...more }],
    },
  });
}

async function waitForState(gateway: Gateway, state: string): Promise<void> {
  let last = "";
  await waitFor(
    `the state ${state}`,
    async () => {
      last = (await gateway.backend("engine")).state;
      return last === state;
    },
    { intervalMs: 10, explain: () => `last state: ${last}` },
  );
}

const healthAnswer = (answer: Answer) => (request: { path: string }) =>
  request.path === "/health" ? answer : models(["m"]);

const LOADING: Answer = {
  status: 503,
  body: '{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}',
};

test("llama.cpp: 503 while loading is warming_up without traffic, 200 is ready", async () => {
  const backend = bed.backend();
  backend.probeAnswer = healthAnswer(LOADING);
  await using gateway = await start(backend, { interval: "60s" }, { type: "llamacpp" });
  await waitForState(gateway, "warming_up");
  expect((await gateway.chat()).status).toBe(503);
  expect((await gateway.fetch("/readyz")).status).toBe(503);
  expect(backend.requests).toHaveLength(0);
  // The interval is a minute: only the accelerated check can notice this.
  backend.probeAnswer = healthAnswer({ body: '{"status":"ok"}' });
  await waitForState(gateway, "ready");
  expect((await gateway.chat()).status).toBe(200);
});

test("vLLM: refused while loading is down, and noticed soon after it comes up although the interval is long", async () => {
  const backend = bed.backend();
  backend.stop();
  await using gateway = await start(backend, { interval: "60s", warmup_check_interval: "1s" }, { type: "vllm" });
  await waitForState(gateway, "down");
  backend.probeAnswer = healthAnswer({ body: "" });
  backend.start();
  const upAtMs = performance.now();
  await waitForState(gateway, "ready");
  console.log(`noticed ${(performance.now() - upAtMs).toFixed(0)} ms after the engine came up (aim: about 1 s)`);
  expect((await gateway.chat()).status).toBe(200);
});

test("a healthy engine that loads again is warming_up at once", async () => {
  const backend = bed.backend();
  await using gateway = await start(backend, {}, { type: "llamacpp" });
  await waitForState(gateway, "ready");
  backend.probeAnswer = healthAnswer(LOADING);
  await waitForState(gateway, "warming_up");
  backend.probeAnswer = healthAnswer({ body: "{}" });
  await waitForState(gateway, "ready");
});

test("unhealthy_threshold failures in a row take a backend out, healthy_threshold successes bring it back", async () => {
  const backend = bed.backend();
  await using gateway = await start(backend, { unhealthy_threshold: 3, healthy_threshold: 2 });
  await waitForState(gateway, "ready");
  const failedBefore = backend.probes.length;
  backend.probeAnswer = failure(500);
  await waitForState(gateway, "unhealthy");
  expect(backend.probes.length - failedBefore).toBeGreaterThanOrEqual(3);
  const sick = await gateway.backend("engine");
  expect(sick.is_healthy).toBe(false);
  expect(sick.consecutive_failures).toBeGreaterThanOrEqual(3);
  expect(sick.last_error).toContain("500");
  expect((await gateway.chat()).status).toBe(503);

  backend.probeAnswer = models(["m"]);
  await waitForState(gateway, "ready");
  expect((await gateway.backend("engine")).consecutive_successes).toBeGreaterThanOrEqual(2);
  expect((await gateway.backend("engine")).last_error).toBe(null);
  expect((await gateway.chat()).status).toBe(200);
});

test("fewer failures than the threshold change nothing", async () => {
  const backend = bed.backend();
  await using gateway = await start(backend, { unhealthy_threshold: 3 });
  await waitForState(gateway, "ready");
  let failuresLeft = 2;
  let answered = 0;
  backend.probeAnswer = () => {
    answered += 1;
    return failuresLeft-- > 0 ? failure(500) : models(["m"]);
  };
  const seen = new Set<string>();
  await waitFor("six more checks", async () => {
    seen.add((await gateway.backend("engine")).state);
    return answered >= 6;
  });
  expect([...seen]).toEqual(["ready"]);
});

test("a load that outlasts max_warmup_duration is unhealthy", async () => {
  const backend = bed.backend();
  await using gateway = await start(backend, { max_warmup_duration: "1s" }, { type: "llamacpp" });
  await waitForState(gateway, "ready");
  backend.probeAnswer = healthAnswer(LOADING);
  await waitForState(gateway, "warming_up");
  await waitForState(gateway, "unhealthy");
  backend.probeAnswer = healthAnswer({ body: "{}" });
  await waitForState(gateway, "ready");
});

test("a probe that hangs fails after its timeout", async () => {
  const backend = bed.backend();
  backend.probeAnswer = { hang: true };
  await using gateway = await start(backend, { timeout: "100ms" });
  const status = await gateway.backend("engine");
  expect(status.is_healthy).toBe(false);
  expect(status.last_error ?? "").not.toBe("");
  await waitFor("no probe is left open", () => backend.busyConnections <= 1);
});

test("a crashed backend is noticed by the requests that meet it, before the next check", async () => {
  const backend = bed.backend();
  await using gateway = await start(backend, { interval: "60s", unhealthy_threshold: 1 });
  await waitForState(gateway, "ready");
  backend.stop();
  expect((await gateway.chat()).status).toBeGreaterThanOrEqual(502);
  await waitFor("it is no longer healthy", async () => !(await gateway.backend("engine")).is_healthy);
  backend.start();
  await waitForState(gateway, "ready");
});

test("a probe path that answers 404 is followed by the fallback paths", async () => {
  const backend = bed.backend();
  backend.probeAnswer = (request) => (request.path === "/second" ? { body: "" } : failure(404));
  await using gateway = await start(
    backend,
    {},
    { health_check: { endpoint: "/first", fallback_endpoints: ["/also-missing", "/second"] } },
  );
  await waitForState(gateway, "ready");
  const paths = backend.probes.map((probe) => probe.path);
  expect(paths).toContain("/first");
  expect(paths).toContain("/second");
});

test("a probe of one's own: method, body and accepted status codes", async () => {
  const backend = bed.backend({ answer: failure(401) });
  await using gateway = await start(
    backend,
    {},
    { health_check: { method: "POST", endpoint: "/v1/ping", body: { ping: 1 }, accept_status: [200, 401] } },
  );
  await waitForState(gateway, "ready");
  expect(backend.requests[0]?.path).toBe("/v1/ping");
  expect(backend.requests[0]?.json()).toEqual({ ping: 1 });
});

test("warmup_status of one's own", async () => {
  const backend = bed.backend();
  backend.probeAnswer = failure(425);
  await using gateway = await start(backend, {}, { health_check: { endpoint: "/state", warmup_status: [425] } });
  await waitForState(gateway, "warming_up");
});

test("every kind is probed where its engine answers", async () => {
  const paths = {
    vllm: "/health",
    llamacpp: "/health",
    federated: "/health",
    ollama: "/api/tags",
    lmstudio: "/v1/models",
    openai: "/v1/models",
  };
  const backends = Object.keys(paths).map((type) => ({ type, backend: bed.backend() }));
  await using gateway = await startGateway({
    config: {
      backends: backends.map(({ type, backend }) => ({ name: type, type, url: backend.url, models: [type] })),
    },
  });
  for (const { type, backend } of backends) {
    expect((await gateway.backend(type)).state).toBe("ready");
    expect(backend.probes[0]?.path).toBe(paths[type as keyof typeof paths]);
  }
});

test("the probe carries the backend's credential", async () => {
  const backend = bed.backend();
  await using gateway = await start(backend, { interval: "60s" }, { api_key: "sk-sekret-probe" });
  await waitForState(gateway, "ready");
  expect(backend.probes[0]?.headers.authorization).toBe("Bearer sk-sekret-probe");
});

test("the first checks run side by side: one that hangs does not hold the others back", async () => {
  const slow = bed.backend();
  slow.probeAnswer = { hang: true };
  const good = bed.backend();
  await using gateway = await startGateway({
    awaitHealth: false,
    config: {
      health_checks: { timeout: "5s" },
      backends: [
        { name: "slow", url: slow.url, models: ["x"] },
        { name: "engine", url: good.url, models: ["m"] },
      ],
    },
  });
  await gateway.waitForHealth("engine", true);
  expect((await gateway.chat()).status).toBe(200);
});

test("without health checks every enabled backend counts as available", async () => {
  const backend = bed.backend();
  backend.probeAnswer = failure(500);
  await using gateway = await start(backend, { enabled: false });
  expect((await gateway.backend("engine")).is_healthy).toBe(true);
  expect((await gateway.chat()).status).toBe(200);
  expect(backend.probes.filter((probe) => probe.path === "/health")).toHaveLength(0);
});

test("a model that a backend loaded a moment ago is found within seconds of being asked for, whatever the ttl", async () => {
  const backend = bed.backend({ models: ["old"] });
  await using gateway = await startGateway({
    config: { backends: [{ name: "engine", type: "lmstudio", url: backend.url }] },
  });
  await waitForState(gateway, "ready");
  expect((await gateway.chat({ model: "old" })).status).toBe(200);
  backend.probeAnswer = models(["old", "new"]);
  await waitFor("the new model answers", async () => (await gateway.chat({ model: "new" })).status === 200, {
    intervalMs: 200,
  });
});

test("a model list that breaks later keeps the models that were known", async () => {
  const backend = bed.backend({ models: ["m"] });
  await using gateway = await startGateway({
    config: {
      routing: { model_list_cache: { ttl: "100ms" } },
      health_checks: { interval: "100ms" },
      backends: [{ name: "engine", type: "vllm", url: backend.url }],
    },
  });
  await waitForState(gateway, "ready");
  expect((await gateway.chat()).status).toBe(200);
  backend.probeAnswer = (request) => (request.path === "/health" ? { body: "" } : failure(500));
  await Bun.sleep(300);
  expect((await gateway.chat()).status).toBe(200);
});
