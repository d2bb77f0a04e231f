// The circuit breaker: a backend that keeps failing is left alone, then tried with single requests; what is the
// client's fault, or mere overload, never counts (specification, "States and transitions"; decisions.md, section 3).

import { beforeAll, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { expectError } from "../support/expect-error.ts";
import type { Answer, FakeBackend } from "../support/fake-backend.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatStream, failure } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor, within } from "../support/wait-for.ts";

const bed = createTestBed();

/** The first backend gets every request that its circuit lets through; the others stand by. */
function start(
  backends: Record<string, FakeBackend>,
  circuit_breaker: NonNullable<ConfigDocument["circuit_breaker"]>,
  more: Partial<ConfigDocument> = {},
): Promise<Gateway> {
  return startGateway({
    config: {
      routing: { selection_strategy: "WeightedRoundRobin" },
      retry: { max_attempts: 1 },
      health_checks: { enabled: false },
      // One test is about the panic rule.
      circuit_breaker: { panic: false, ...circuit_breaker },
      backends: Object.entries(backends).map(([name, backend], index) => ({
        name,
        url: backend.url,
        models: ["m"],
        weight: index === 0 ? 1 : 0,
      })),
      ...more,
    },
  });
}

async function ask(gateway: Gateway, count: number, more: Record<string, unknown> = {}): Promise<number[]> {
  const statuses: number[] = [];
  for (let index = 0; index < count; index++) {
    const response = await gateway.chat(more);
    await response.text();
    statuses.push(response.status);
  }
  return statuses;
}

test("it opens after the threshold, and the backend is left alone", async () => {
  const sick = bed.backend({ answer: failure(500) });
  await using gateway = await start({ sick }, { failure_threshold: 3 });
  expect((await gateway.backend("sick")).circuit).toBe("closed");
  await ask(gateway, 2);
  expect((await gateway.backend("sick")).circuit).toBe("closed");
  await ask(gateway, 1);
  expect((await gateway.backend("sick")).circuit).toBe("open");
  expect(sick.requests).toHaveLength(3);
  for (let index = 0; index < 3; index++) {
    const response = await gateway.chat();
    const error = await expectError(response, 503);
    expect(error).toMatchObject({ type: "circuit_breaker_open", code: "circuit_breaker_open" });
    expect(error.message).toContain("sick");
    const seconds = Number(response.headers.get("retry-after"));
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(60);
  }
  expect(sick.requests).toHaveLength(3);
  await gateway.waitUntilIdle();
});

test("while it is open, another backend answers and nobody notices", async () => {
  const sick = bed.backend({ answer: failure(502) });
  const good = bed.backend({ answer: chat("good") });
  await using gateway = await start({ sick, good }, { failure_threshold: 2 }, { retry: { base_delay: "1ms" } });
  for (let index = 0; index < 10; index++) {
    expect(await ask(gateway, 1)).toEqual([200]);
    await gateway.backend("sick"); // what the admin API has answered is known to every worker
  }
  expect(sick.requests).toHaveLength(2);
  expect(good.requests).toHaveLength(10);
  expect((await gateway.backend("good")).circuit).toBe("closed");
});

test("half open, single requests try the backend; enough successes close it", async () => {
  const sick = bed.backend({ answer: failure(500) });
  await using gateway = await start(
    { sick },
    { failure_threshold: 1, timeout: "200ms", half_open_max_requests: 2, success_threshold: 3 },
  );
  await ask(gateway, 1);
  await gateway.waitForCircuit("sick", "half_open");
  const gate = Promise.withResolvers<void>();
  sick.reset({ ...chat("back"), headersAfter: gate.promise });
  const pending = Array.from({ length: 20 }, () => gateway.chat());
  await waitFor("two of 20 try it", () => sick.requests.length === 2);
  await Bun.sleep(100);
  expect(sick.requests).toHaveLength(2); // the others wait for them
  gate.resolve();
  const statuses = (await Promise.all(pending)).map((response) => response.status);
  expect(statuses).toEqual(Array(20).fill(200));
  expect((await gateway.backend("sick")).circuit).toBe("closed");
  expect(await ask(gateway, 5)).toEqual(Array(5).fill(200));
  for (const response of await Promise.all(pending)) await response.text();
});

describe("where the circuits of all backends of a model are open", () => {
  test("they are tried, a few requests at a time, and a client is refused only when all of them fail", async () => {
    const [one, two] = [bed.backend({ answer: failure(502) }), bed.backend({ answer: failure(502) })];
    await using gateway = await start(
      { one, two },
      { panic: true, failure_threshold: 1, half_open_max_requests: 1, success_threshold: 1 },
      { retry: { max_attempts: 2, base_delay: "1ms" } },
    );
    await ask(gateway, 2);
    const circuits = async () => (await gateway.backends()).map(({ circuit }) => circuit);
    expect(await circuits()).toEqual(["open", "open"]);
    expect((await gateway.fetch("/readyz")).status).toBe(200);

    // Each is tried once, and the client is told the failure.
    const asked = [one.requests.length, two.requests.length];
    expect(await ask(gateway, 1)).toEqual([502]);
    expect([one.requests.length, two.requests.length]).toEqual(asked.map((count) => count + 1));
    expect(await circuits()).toEqual(["open", "open"]);

    two.reset(chat("back"));
    const answer = await gateway.chat();
    expect(answer.status).toBe(200);
    await answer.text();
    expect((await circuits())[1]).toBe("closed");
    const id = answer.headers.get("x-signalbox-request-id");
    const story = (await (await gateway.fetch(`/admin/requests/${id}`)).json()) as { explanation: string[] };
    expect(story.explanation.join(" ")).toContain("tried although its circuit was open");
  });

  test("no more than half_open_max_requests are at a backend, and the others wait for them", async () => {
    const sick = bed.backend({ answer: failure(500) });
    await using gateway = await start(
      { sick },
      { panic: true, failure_threshold: 1, half_open_max_requests: 2, success_threshold: 1 },
    );
    await ask(gateway, 1);
    // What the admin API has answered is known to every worker.
    await gateway.waitForCircuit("sick", "open");
    const gate = Promise.withResolvers<void>();
    sick.reset({ ...chat("back"), headersAfter: gate.promise });
    const pending = Array.from({ length: 10 }, () => gateway.chat());
    await waitFor("two of 10 try it", () => sick.requests.length === 2);
    gate.resolve();
    expect((await Promise.all(pending)).map(({ status }) => status)).toEqual(Array(10).fill(200));
    for (const response of await Promise.all(pending)) await response.text();
  });

  test("without the panic rule nothing can be asked, and readiness, health, the metric and the list say so", async () => {
    const sick = bed.backend({ answer: failure(500) });
    await using gateway = await start({ sick }, { failure_threshold: 1 });
    const askedMs = Date.now();
    await ask(gateway, 1);
    const readiness = async (status: number) => (await gateway.fetch("/readyz")).status === status;
    await waitFor("the gateway is not ready", () => readiness(503));
    expect((await gateway.fetch("/admin/health")).status).toBe(503);
    const { can_be_asked, circuit, circuit_since } = await gateway.backend("sick");
    expect([can_be_asked, circuit]).toEqual([false, "open"]);
    expect(Date.parse(circuit_since as string)).toBeGreaterThanOrEqual(askedMs - 1);
    expect(await (await gateway.fetch("/metrics")).text()).toContain(
      'signalbox_backend_up{backend="sick",kind="generic"} 0',
    );

    const reset = await gateway.fetch("/admin/backends/sick/circuit/reset", { method: "POST" });
    expect(await reset.json()).toMatchObject({ success: true, previous_state: "open" });
    await waitFor("the gateway is ready", () => readiness(200));
    expect(await gateway.backend("sick")).toMatchObject({ circuit: "closed", circuit_since: null });
    expect((await gateway.fetch("/admin/backends/none/circuit/reset", { method: "POST" })).status).toBe(404);
  });

  test("a change of timeouts, or of the backend, has the circuit tried at once", async () => {
    const sick = bed.backend({ answer: failure(500) });
    await using gateway = await start({ sick }, { failure_threshold: 1 });
    for (const [method, path, body] of [
      ["PATCH", "/admin/config/timeouts", { first_byte: "3s" }],
      ["PATCH", "/admin/config/retry", { base_delay: "7ms" }],
      ["PUT", "/admin/backends/sick", { headers: { "x-other": "1" } }],
      ["POST", "/admin/config/rollback/2", undefined],
    ] as const) {
      await ask(gateway, 1);
      expect((await gateway.backend("sick")).circuit).toBe("open");
      const changed = await gateway.fetch(path, {
        method,
        headers: { "Content-Type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      expect(changed.status).toBe(200);
      await gateway.waitForCircuit("sick", "half_open");
    }
  });
});

test("what fails in milliseconds is not shown as slow", async () => {
  const sick = bed.backend({ answer: failure(500) });
  await using gateway = await start({ sick }, { enabled: false });
  await ask(gateway, 2);
  const metrics = async () => await (await gateway.fetch("/metrics")).text();
  expect(await metrics()).not.toContain('signalbox_backend_latency_seconds{backend="sick"}');
  sick.reset(chat("fine"));
  await ask(gateway, 1);
  const seconds = Number(/signalbox_backend_latency_seconds\{backend="sick"\} (\S+)/.exec(await metrics())?.[1]);
  expect(seconds).toBeLessThan(2);
});

test("a failure while half open opens it again", async () => {
  const sick = bed.backend({ answer: failure(500) });
  await using gateway = await start({ sick }, { failure_threshold: 1, timeout: "200ms" });
  await ask(gateway, 1);
  await gateway.waitForCircuit("sick", "half_open");
  expect(await ask(gateway, 1)).not.toEqual([200]);
  expect(sick.requests).toHaveLength(2);
  const { circuit } = await gateway.backend("sick");
  expect(circuit).not.toBe("closed");
  await gateway.waitForCircuit("sick", "half_open");
  sick.reset(chat("back"));
  expect(await ask(gateway, 2)).toEqual([200, 200]);
  expect((await gateway.backend("sick")).circuit).toBe("closed");
});

test("a trial whose client leaves gives its place back", async () => {
  const sick = bed.backend({ answer: failure(500) });
  await using gateway = await start(
    { sick },
    { failure_threshold: 1, timeout: "100ms", half_open_max_requests: 1, success_threshold: 1 },
  );
  await ask(gateway, 1);
  await gateway.waitForCircuit("sick", "half_open");
  sick.reset({ hang: true });
  const leaving = new AbortController();
  const pending = gateway.chat({}, { signal: leaving.signal }).catch(() => undefined);
  await waitFor("the trial is under way", () => sick.requests.length === 1);
  expect(await ask(gateway, 1)).toEqual([503]);
  leaving.abort();
  await pending;
  await within("the backend is let go", sick.lastRequest.closed);
  await gateway.waitUntilIdle();
  sick.reset(chat("back"));
  expect(await ask(gateway, 1)).toEqual([200]);
  expect((await gateway.backend("sick")).circuit).toBe("closed");
});

test("a trial that streams closes it, and others come through before the stream ends", async () => {
  const sick = bed.backend({ answer: failure(500) });
  await using gateway = await start(
    { sick },
    { failure_threshold: 1, timeout: "100ms", half_open_max_requests: 1, success_threshold: 1 },
  );
  await ask(gateway, 1);
  await gateway.waitForCircuit("sick", "half_open");
  const gate = Promise.withResolvers<void>();
  sick.reset(chatStream(["one", "two"], {}, { beforeChunk: (index) => (index === 2 ? gate.promise : undefined) }));
  const response = await gateway.chat({ stream: true });
  expect(response.status).toBe(200);
  await gateway.waitForCircuit("sick", "closed");
  gate.resolve();
  await response.text();
});

const HARMLESS: Record<string, Answer> = {
  "429": failure(429),
  "429 with Retry-After": { ...failure(429), headers: { "Retry-After": "1" } },
  "503 with Retry-After": { ...failure(503), headers: { "Retry-After": "1" } },
  "400": failure(400),
  "404": failure(404),
  "413": failure(413),
  "422": failure(422),
};

test("overload and a client's own error never open it", async () => {
  const backend = bed.backend();
  await using gateway = await start({ backend }, { failure_threshold: 1, minimum_requests: 1 });
  for (const [name, answer] of Object.entries(HARMLESS)) {
    backend.reset(answer);
    await ask(gateway, 3);
    expect([name, (await gateway.backend("backend")).circuit, backend.requests.length]).toEqual([name, "closed", 3]);
  }
});

const HARMFUL: Record<string, Answer> = {
  "500": failure(500),
  "502": failure(502),
  "503 without Retry-After": failure(503),
  "401, which refuses the gateway's own credential": failure(401),
  "504": failure(504),
  "a reset": { breakWith: "reset" },
  "half a body": { body: '{"id":', contentLength: 100 },
  "no answer in time": { hang: true },
  "an error within 200": { body: '{"error":{"message":"broken","code":500}}' },
};

describe("what a backend does counts:", () => {
  const gone = bed.backend();
  gone.stop();
  const cases = { ...HARMFUL, "a refused connection": undefined };
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await bed.gateway({
      config: {
        retry: { max_attempts: 1 },
        health_checks: { enabled: false },
        circuit_breaker: { failure_threshold: 2 },
        timeouts: { first_byte: "100ms" },
        backends: Object.values(cases).map((answer, index) => ({
          name: `b${index}`,
          url: (answer === undefined ? gone : bed.backend({ answer })).url,
          models: [`m${index}`],
        })),
      },
    });
  });
  test.each(Object.keys(cases).map((name, index) => [name, index] as const))("%s", async (_name, index) => {
    await ask(gateway, 2, { model: `m${index}` });
    expect((await gateway.backend(`b${index}`)).circuit).toBe("open");
  });
});

test("a stream that breaks off counts, one that the client leaves does not", async () => {
  const backend = bed.backend();
  await using gateway = await start({ backend }, { failure_threshold: 2 });
  backend.reset(
    chatStream(["one", "two"], {}, { beforeChunk: (index) => (index === 2 ? new Promise(() => {}) : undefined) }),
  );
  for (let index = 0; index < 4; index++) {
    const response = await gateway.chat({ stream: true });
    await response.body?.cancel();
    await within("the backend is let go", backend.lastRequest.closed);
  }
  await gateway.waitUntilIdle();
  expect((await gateway.backend("backend")).circuit).toBe("closed");
  backend.reset(chatStream(["one", "two"], {}, { breakAfterBytes: 400, breakWith: "reset" }));
  await ask(gateway, 2, { stream: true });
  await gateway.waitForCircuit("backend", "open");
});

test("a success in between starts the count anew, but the rate opens it", async () => {
  const backend = bed.backend();
  await using gateway = await start(
    { backend },
    { failure_threshold: 2, failure_rate_threshold: 0.5, minimum_requests: 10 },
  );
  for (let index = 0; index < 4; index++) {
    backend.queue(failure(500));
    for (const _ of ["failed", "succeeded"]) {
      await ask(gateway, 1);
      // Another worker counts what it has heard of, and it has when the admin API answers.
      expect((await gateway.backend("backend")).circuit).toBe("closed");
    }
  }
  backend.queue(chat("ok"), failure(500));
  await ask(gateway, 2);
  expect((await gateway.backend("backend")).circuit).toBe("open");
});

test("failures of one incident that arrive together count once", async () => {
  const backend = bed.backend({ answer: { hang: true } });
  await using gateway = await start({ backend }, { failure_threshold: 2 });
  const pending = Array.from({ length: 40 }, () => gateway.chat());
  await waitFor("all are under way", () => backend.requests.length === 40);
  // One whose connection had been used before is sent once more over a new one.
  backend.answer = { breakWith: "reset" };
  backend.dropConnections();
  for (const response of await Promise.all(pending)) await expectError(response, 502);
  expect((await gateway.backend("backend")).circuit).toBe("closed");
  backend.reset(chat("back"));
  expect(await ask(gateway, 1)).toEqual([200]);
});

test("a backend's own settings win, and enabled: false keeps its circuit closed", async () => {
  const [strict, patient, exempt] = [1, 2, 3].map(() => bed.backend({ answer: failure(500) })) as [
    FakeBackend,
    FakeBackend,
    FakeBackend,
  ];
  await using gateway = await startGateway({
    config: {
      retry: { max_attempts: 1 },
      health_checks: { enabled: false },
      circuit_breaker: {
        failure_threshold: 3,
        panic: false,
        backends: { strict: { failure_threshold: 1 }, exempt: { enabled: false } },
      },
      backends: Object.entries({ strict, patient, exempt }).map(([name, { url }]) => ({ name, url, models: [name] })),
    },
  });
  const circuits = async () => (await gateway.backends()).map(({ name, circuit }) => `${name} ${circuit}`);
  for (const model of ["strict", "patient", "exempt"]) await ask(gateway, 1, { model });
  expect(await circuits()).toEqual(["strict open", "patient closed", "exempt closed"]);
  for (const model of ["strict", "patient", "exempt"]) await ask(gateway, 2, { model });
  expect(await circuits()).toEqual(["strict open", "patient open", "exempt closed"]);
  expect(strict.requests).toHaveLength(1);
});

test("switched off, it never opens", async () => {
  const backend = bed.backend({ answer: failure(500) });
  await using gateway = await start({ backend }, { enabled: false, failure_threshold: 1 });
  await ask(gateway, 10);
  expect(backend.requests).toHaveLength(10);
  expect((await gateway.backend("backend")).circuit).toBe("closed");
});

test("health checks that see the backend come back end the wait", async () => {
  const backend = bed.backend();
  await using gateway = await start(
    { backend },
    { failure_threshold: 1, timeout: "300s", success_threshold: 1 },
    {
      health_checks: { interval: "100ms", warmup_check_interval: "50ms", unhealthy_threshold: 1, healthy_threshold: 1 },
    },
  );
  backend.stop();
  await ask(gateway, 1);
  expect((await gateway.backend("backend")).circuit).toBe("open");
  await gateway.waitForHealth("backend", false);
  backend.start();
  await gateway.waitForHealth("backend", true);
  await gateway.waitForCircuit("backend", "half_open");
  expect(await ask(gateway, 3)).toEqual([200, 200, 200]);
  expect((await gateway.backend("backend")).circuit).toBe("closed");
});

test("only the health checks' news end the wait: a backend that fails requests but passes its checks stays alone", async () => {
  const backend = bed.backend({ answer: failure(500) });
  await using gateway = await start(
    { backend },
    { failure_threshold: 1, timeout: "300s" },
    { health_checks: { interval: "50ms" } },
  );
  await ask(gateway, 1);
  const checks = backend.probes.length;
  await waitFor("three more checks", () => backend.probes.length >= checks + 3);
  expect((await gateway.backend("backend")).circuit).toBe("open");
  expect(backend.requests).toHaveLength(1);
});

test("embeddings and text completions move the same circuit", async () => {
  const backend = bed.backend({ answer: failure(500) });
  await using gateway = await start({ backend }, { failure_threshold: 2 });
  await (await gateway.post("/v1/embeddings", { model: "m", input: "x" })).text();
  await (await gateway.post("/v1/completions", { model: "m", prompt: "x" })).text();
  expect((await gateway.backend("backend")).circuit).toBe("open");
});
