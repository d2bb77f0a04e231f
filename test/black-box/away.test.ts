// A model that nobody can serve now: the client learns whose fault it is and when to try again; an unknown one is named.

import { expect, test } from "bun:test";
import { expectError } from "../support/expect-error.ts";
import { chat, failure } from "../support/openai-answers.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

const questions: [title: string, path: string, body: Record<string, unknown>][] = [
  ["chat", "/v1/chat/completions", { messages: [{ role: "user", content: "hi" }] }],
  ["messages", "/v1/messages", { max_tokens: 9, messages: [{ role: "user", content: "hi" }] }],
  ["responses", "/v1/responses", { input: "hi" }],
  ["embeddings", "/v1/embeddings", { input: "hi" }],
];

/** Three backends: one refuses connections, one loads its model, one serves something else. */
async function poolWithAbsent() {
  const gone = bed.backend();
  const loading = bed.backend();
  const other = bed.backend({ models: ["llama-3-70b"] });
  gone.stop();
  loading.probeAnswer = failure(503);
  const gateway = await startGateway({
    config: {
      health_checks: { healthy_threshold: 1, unhealthy_threshold: 1 },
      backends: [
        { name: "gpu-1", url: gone.url, models: ["m"] },
        { name: "gpu-2", type: "vllm", url: loading.url, models: ["m"] },
        { name: "gpu-3", url: other.url, models: ["llama-3-70b"] },
      ],
    },
  });
  return { gateway, gone, loading, other };
}

test("a model whose backends are all away is 404, says why each of them is, and when to try again", async () => {
  const pool = await poolWithAbsent();
  await using gateway = pool.gateway;
  for (const [title, path, body] of questions) {
    for (const stream of title === "embeddings" ? [false] : [false, true]) {
      const response = await gateway.post(path, { model: "m", stream, ...body });
      expect([title, response.status]).toEqual([title, 404]);
      expect(response.headers.get("x-should-retry")).toBe("true");
      expect(Number(response.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
      const text = await response.text();
      const { error } = JSON.parse(text) as { error: { type: string; message: string } };
      expect(error.type).toBe(title === "messages" ? "not_found_error" : "model_not_found");
      expect(error.message).toContain("gpu-1: connection refused; gpu-2: still loading");
      expect(text).not.toMatch(/127\.0\.0\.1|localhost|http:|\/health/);
    }
  }
});

test("an unknown model is 404 with the nearest known one, and no reason to try again", async () => {
  const pool = await poolWithAbsent();
  await using gateway = pool.gateway;
  for (const [title, path, body] of questions) {
    const response = await gateway.post(path, { model: "llama-3-7b", ...body });
    expect(response.status).toBe(404);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(response.headers.get("retry-after")).toBeNull();
    const { error } = (await response.json()) as { error: { type: string; message: string } };
    expect([title, error.message]).toEqual([
      title,
      "The model 'llama-3-7b' is not served by any backend; did you mean 'llama-3-70b'?",
    ]);
  }
  for (const init of [{}, { headers: { "anthropic-version": "2023-06-01" } }]) {
    const response = await gateway.fetch("/v1/models/llama-3-7b", init);
    expect(response.status).toBe(404);
    expect(await response.text()).toContain("did you mean 'llama-3-70b'?");
  }
  const far = await expectError(await gateway.chat({ model: "x".repeat(100_000) }), 404);
  expect(far.message).toEndWith("GET /v1/models lists the models.");
});

test("without any healthy backend it is 503, with the same reasons", async () => {
  const gone = bed.backend();
  gone.stop();
  await using gateway = await startGateway({
    config: {
      health_checks: { unhealthy_threshold: 1 },
      backends: [
        { name: "gpu-1", url: gone.url, models: ["m"] },
        { name: "off", url: gone.url, models: ["m"], enabled: false },
      ],
    },
  });
  const response = await gateway.chat();
  expect(response.headers.get("x-should-retry")).toBe("true");
  expect(Number(response.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  const error = await expectError(response, 503);
  expect(error).toMatchObject({ code: "all_backends_unhealthy" });
  expect(error.message).toBe("No backend is healthy at the moment (gpu-1: connection refused).");
});

test("a model that only disabled backends serve is not worth another try", async () => {
  const backend = bed.backend();
  await using gateway = await startGateway({
    config: {
      backends: [
        { name: "off", url: backend.url, models: ["rare"], enabled: false },
        { name: "on", url: backend.url, models: ["m"] },
      ],
    },
  });
  const response = await gateway.chat({ model: "rare" });
  expect(response.headers.get("x-should-retry")).toBe("false");
  expect((await expectError(response, 404)).message).toContain("(off: disabled)");
});

test("a circuit that opens has the backend checked at once", async () => {
  const sick = bed.backend({ answer: failure(500) });
  const good = bed.backend({ answer: chat("good") });
  await using gateway = await startGateway({
    config: {
      circuit_breaker: { enabled: true, failure_threshold: 2 },
      health_checks: { interval: "10m", unhealthy_threshold: 1 },
      routing: { selection_strategy: "WeightedRoundRobin" },
      backends: [
        { name: "sick", url: sick.url, models: ["m"] },
        { name: "good", url: good.url, models: ["m"], weight: 0 },
      ],
    },
  });
  sick.reset(failure(500));
  sick.probeAnswer = failure(500);
  for (let count = 0; count < 2; count++) await (await gateway.chat()).text();
  await waitFor("it was checked", () => sick.probes.length > 0);
  await gateway.waitForHealth("sick", false);
});
