// /admin/stats and /admin/health: what the gateway has done, per model, backend and key, also after a restart.

import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AdminClient } from "../support/admin-client.ts";
import { expectError } from "../support/expect-error.ts";
import { chat, chatStream, failure, sseEvent } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const USAGE = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };

type Row = Record<string, unknown>;

test("every request is counted, with its tokens, for its model and its backend", async () => {
  const one = bed.backend({ answer: chat("x") });
  const two = bed.backend({ answer: failure(500) });
  await using gateway = await bed.process({
    config: {
      backends: [
        { name: "one", type: "vllm", url: one.url, models: ["m", "s"] },
        { name: "two", type: "vllm", url: two.url, models: ["broken"] },
      ],
      retry: { max_attempts: 1 },
    },
  });
  const admin = new AdminClient(gateway);
  const empty = await admin.get("/admin/stats");
  expect(empty).toMatchObject({ window: "all", overall: { total_requests: 0 }, models: [], backends: [] });

  await (await gateway.chat()).text();
  await (await gateway.chat()).text();
  const usage = sseEvent({ object: "chat.completion.chunk", model: "s", choices: [], usage: USAGE });
  const { body: events, ...stream } = chatStream(["a", "b"], { done: false });
  one.queue({ ...stream, body: [...(events as string[]), usage, "data: [DONE]\n\n"] });
  await (await gateway.chat({ model: "s", stream: true })).text();
  await expectError(await gateway.chat({ model: "broken" }), [500, 502]);
  await expectError(await gateway.chat({ model: "nobody-has-it" }), 404);
  await (await gateway.fetch("/v1/models")).text(); // asks no model

  const stats = await waitFor("the stream is counted", async () => {
    const answer = await admin.get("/admin/stats");
    return (answer.overall as Row).total_requests === 5 && answer;
  });
  expect(Object.keys(stats)).toEqual(["uptime_seconds", "window", "overall", "models", "backends"]);
  expect(stats.overall).toEqual({
    total_requests: 5,
    successful_requests: 3,
    failed_requests: 1,
    refused_requests: 1, // the unknown model
    avg_latency_ms: expect.any(Number),
    p50_latency_ms: expect.any(Number),
    p95_latency_ms: expect.any(Number),
    p99_latency_ms: expect.any(Number),
    total_prompt_tokens: 9,
    total_completion_tokens: 6,
    total_tokens: 15,
    tokens_per_sec_avg: expect.any(Number),
  });
  const { p50_latency_ms, p95_latency_ms, p99_latency_ms } = stats.overall as Record<string, number>;
  expect(p50_latency_ms).toBeGreaterThan(0);
  expect(p95_latency_ms).toBeGreaterThanOrEqual(p50_latency_ms as number);
  expect(p99_latency_ms).toBeGreaterThanOrEqual(p95_latency_ms as number);

  const rows = stats.models as Row[];
  expect(rows[0]).toEqual({
    model_id: "m",
    total_requests: 2,
    successful_requests: 2,
    failed_requests: 0,
    refused_requests: 0,
    total_prompt_tokens: 6,
    total_completion_tokens: 4,
    total_tokens: 10,
    avg_latency_ms: expect.any(Number),
    avg_tokens_per_sec: expect.any(Number),
    last_used: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
  });
  expect(rows).toContainEqual(expect.objectContaining({ model_id: "s", total_tokens: 5 }));
  expect(rows).toContainEqual(expect.objectContaining({ model_id: "broken", failed_requests: 1 }));
  // What clients make up is not kept by name.
  expect(rows.map(({ model_id }) => model_id)).not.toContain("nobody-has-it");
  expect(stats.backends).toEqual([
    expect.objectContaining({ backend_name: "one", total_requests: 3, successful_requests: 3, total_tokens: 15 }),
    expect.objectContaining({ backend_name: "two", total_requests: 1, failed_requests: 1, total_tokens: 0 }),
  ]);
  expect(Object.keys((stats.backends as Row[])[0] as Row).slice(1)).toEqual([
    ...Object.keys(rows[0] as Row).slice(1),
    ...["p50_latency_ms", "p95_latency_ms", "p99_latency_ms"],
    ...["p50_first_token_ms", "p95_first_token_ms", "p99_first_token_ms"],
  ]);

  for (const window of ["30m", "1h", "24h", "7d"]) {
    expect(await admin.get(`/admin/stats?window=${window}`)).toMatchObject({ window, overall: { total_requests: 5 } });
  }
  expect(Object.keys(await admin.get("/admin/stats/models?window=1h"))).toEqual(["uptime_seconds", "window", "models"]);
  expect(Object.keys(await admin.get("/admin/stats/backends"))).toEqual(["uptime_seconds", "window", "backends"]);
  expect((await admin.refused(400, "GET", "/admin/stats?window=2h")).param).toBe("window");

  expect(await admin.ok("POST", "/admin/stats/reset")).toMatchObject({ success: true });
  expect(await admin.get("/admin/stats")).toMatchObject({ overall: { total_requests: 0 }, models: [], backends: [] });
});

test("names that clients make up take no memory", async () => {
  const backend = bed.backend({ answer: chat("x") });
  await using gateway = await bed.process({ config: { backends: [{ name: "a", url: backend.url, models: ["m"] }] } });
  const admin = new AdminClient(gateway);
  for (let round = 0; round < 20; round++) {
    await Promise.all(
      Array.from({ length: 50 }, async (_, index) =>
        (await gateway.chat({ model: `made-up-${round}-${index}` })).text(),
      ),
    );
  }
  await (await gateway.chat()).text();
  const { overall, models } = await admin.get("/admin/stats");
  expect(overall).toMatchObject({ total_requests: 1001 });
  expect((models as Row[]).map(({ model_id, total_requests }) => [model_id, total_requests])).toEqual([
    ["(other)", 1000],
    ["m", 1],
  ]);
});

test("costs per key and model, by the prices of the metadata", async () => {
  const backend = bed.backend({ answer: chat("x") });
  const pricing = { input_tokens: 1, output_tokens: 10 };
  await using gateway = await bed.process({
    config: {
      backends: [
        {
          name: "a",
          type: "vllm",
          url: backend.url,
          models: ["m", "free"],
          model_configs: [{ id: "m", metadata: { pricing } }],
        },
      ],
      api_keys: { keys: [{ id: "team", key: "sekret-team" }] },
    },
  });
  const admin = new AdminClient(gateway);
  const asTeam = { headers: { Authorization: "Bearer sekret-team" } };
  await (await gateway.chat({}, asTeam)).text();
  await (await gateway.chat({}, asTeam)).text();
  await (await gateway.chat()).text();
  await (await gateway.chat({ model: "free" }, asTeam)).text();
  expect(await admin.get("/admin/stats/costs")).toEqual({
    total_cost: 0.069,
    currency: "USD",
    unpriced_models: ["free"],
    keys: [
      { key_id: "team", model_id: "m", requests: 2, prompt_tokens: 6, completion_tokens: 4, cost: 0.046 },
      { key_id: "(none)", model_id: "m", requests: 1, prompt_tokens: 3, completion_tokens: 2, cost: 0.023 },
      { key_id: "team", model_id: "free", requests: 1, prompt_tokens: 3, completion_tokens: 2, cost: 0 },
    ],
  });
});

test("costs by key, user, organization, model, backend and day, in windows, and over a restart", async () => {
  const backend = bed.backend({
    answer: chat("x", { usage: { ...USAGE, prompt_tokens_details: { cached_tokens: 1 } } }),
  });
  const pricing = { input_tokens: 1, output_tokens: 10, cache_read_tokens: 0.5 };
  await using gateway = await bed.process({
    config: {
      backends: [
        {
          name: "a",
          type: "vllm",
          url: backend.url,
          models: ["m", "gpt-4o"],
          model_configs: [{ id: "m", metadata: { pricing } }],
        },
      ],
      api_keys: {
        keys: [
          { id: "one", key: "sekret-one", user_id: "ann", organization_id: "lab" },
          { id: "two", key: "sekret-two", user_id: "bob", organization_id: "lab" },
        ],
      },
    },
  });
  const admin = new AdminClient(gateway);
  const as = (key: string) => ({ headers: { Authorization: `Bearer ${key}` } });
  await (await gateway.chat({}, as("sekret-one"))).text();
  await (await gateway.chat({}, as("sekret-one"))).text();
  await (await gateway.chat({}, as("sekret-two"))).text();
  await (await gateway.chat({ model: "gpt-4o" })).text(); // has a price of its own
  const each = { prompt_tokens: 3, completion_tokens: 2, cached_tokens: 1 };
  const times = (count: number, cost: number) => ({
    requests: count,
    prompt_tokens: each.prompt_tokens * count,
    completion_tokens: each.completion_tokens * count,
    cached_tokens: each.cached_tokens * count,
    cost,
  });
  // 2 fresh and 1 cached prompt tokens at 1 and 0.5, 2 tokens of the answer at 10, per 1,000.
  const [two, three, other] = [times(2, 0.045), times(3, 0.0675), times(1, 0.000026)];
  const day = new Date().toISOString().slice(0, 10);
  async function check(): Promise<void> {
    const by = async (query: string) => (await admin.get(`/admin/stats/costs?by=${query}`)).rows;
    const costs = await admin.get("/admin/stats/costs?by=key&window=1h");
    expect(costs).toMatchObject({ by: "key", total_cost: 0.067526 });
    expect(costs.rows).toEqual([
      { key_id: "one", ...two },
      { key_id: "two", ...times(1, 0.0225) },
      { key_id: "(none)", ...other },
    ]);
    expect(((await by("user")) as Row[]).map(({ user_id }) => user_id)).toEqual(["ann", "bob", "(none)"]);
    expect(await by("organization&window=30d")).toEqual([
      { organization_id: "lab", ...three },
      { organization_id: "(none)", ...other },
    ]);
    expect(await by("model")).toEqual([
      { model_id: "m", ...three },
      { model_id: "gpt-4o", ...other },
    ]);
    expect(await by("backend")).toEqual([{ backend_name: "a", ...times(4, 0.067526) }]);
    expect(((await by("day")) as Row[])[0]).toMatchObject({ day });
    expect(await by("key&until=2020-01-01T00:00:00Z")).toEqual([]);
    expect(await by("key&since=2020-01-01T00:00:00Z")).toHaveLength(3);
    expect(await admin.get("/admin/stats/costs?window=24h")).toMatchObject({ keys: { length: 3 } });
  }
  await check();
  expect(await gateway.stop("SIGTERM")).toBe(0);
  await gateway.restart();
  await check();
  for (const [query, param] of [
    ["by=hour", "by"],
    ["window=2h", "window"],
    ["since=soon", "since"],
    ["window=1h&since=0", "window"],
    ["per=key", "per"],
  ]) {
    expect((await admin.refused(400, "GET", `/admin/stats/costs?${query}`)).param).toBe(param as string);
  }
});

test("token_tracking and retention_window change while running; enabled needs a restart", async () => {
  const backend = bed.backend({ answer: chat("x") });
  await using gateway = await bed.process({
    config: { backends: [{ name: "a", type: "vllm", url: backend.url, models: ["m"] }] },
  });
  const admin = new AdminClient(gateway);
  await (await gateway.chat()).text();
  await admin.ok("PATCH", "/admin/config/admin", { stats: { token_tracking: false, retention_window: "1h" } });
  await (await gateway.chat()).text();
  expect(await admin.get("/admin/stats?window=7d")).toMatchObject({ overall: { total_requests: 2, total_tokens: 5 } });
  await admin.ok("PATCH", "/admin/config/admin", { stats: { enabled: false } });
  await admin.get("/admin/stats");
  await gateway.restart();
  for (const path of ["/admin/stats", "/admin/stats/models", "/admin/stats/backends", "/admin/stats/costs"]) {
    expect((await admin.refused(404, "GET", path)).message).toContain("admin.stats.enabled");
  }
});

/** Without what is computed from times, which the file keeps to the microsecond. */
function countsOf(stats: Row): unknown {
  return JSON.parse(JSON.stringify(stats, (key, value) => (/avg|_latency_ms|uptime/.test(key) ? undefined : value)));
}

describe("the snapshot file", () => {
  const start = async () => {
    const backend = bed.backend({ answer: chat("x") });
    const gateway = await bed.process({
      config: { backends: [{ name: "a", type: "vllm", url: backend.url, models: ["m"] }] },
    });
    await (await gateway.chat()).text();
    return { gateway, admin: new AdminClient(gateway), path: join(gateway.folder, "data", "stats.json") };
  };

  test("is written at a graceful end and taken up at the start; the uptime begins anew", async () => {
    const { gateway, admin, path } = await start();
    const before = await admin.get("/admin/stats");
    expect(await gateway.stop("SIGTERM")).toBe(0);
    expect(() => JSON.parse(readFileSync(path, "utf8"))).not.toThrow();
    await gateway.restart();
    const after = await admin.get("/admin/stats");
    expect(countsOf(after)).toEqual(countsOf(before));
    expect(after.uptime_seconds as number).toBeLessThan(30);
    expect(await admin.get("/admin/stats?window=30m")).toMatchObject({ overall: { total_requests: 1 } });
    await (await gateway.chat()).text();
    expect(await gateway.stop("SIGINT")).toBe(0);
    await gateway.restart();
    expect(await admin.get("/admin/stats")).toMatchObject({ overall: { total_requests: 2 } });
  });

  test.each([
    ["is broken", (text: string) => text.slice(0, text.length / 2)],
    ["is something else", () => '{"format":1}'],
  ])("counts from zero when it %s, and keeps what was there under another name", async (_, damage) => {
    const { gateway, admin, path } = await start();
    await gateway.stop();
    const damaged = damage(readFileSync(path, "utf8"));
    writeFileSync(path, damaged);
    await gateway.restart();
    expect(await admin.get("/admin/stats")).toMatchObject({ overall: { total_requests: 0 }, models: [] });
    expect(readFileSync(`${path}.unreadable-1`, "utf8")).toBe(damaged);
    await (await gateway.chat()).text();
    await gateway.stop();
    await gateway.restart();
    expect(await admin.get("/admin/stats")).toMatchObject({ overall: { total_requests: 1 } });
  });

  test("that is older than max_age keeps totals and costs", async () => {
    const { gateway, admin, path } = await start();
    const costs = await admin.get("/admin/stats/costs");
    await gateway.stop();
    writeFileSync(path, readFileSync(path, "utf8").replace(/"saved_at":\d+/, '"saved_at":1'));
    await gateway.restart();
    expect(await admin.get("/admin/stats")).toMatchObject({ overall: { total_requests: 1 } });
    expect(await admin.get("/admin/stats?window=1h")).toMatchObject({ overall: { total_requests: 0 } });
    expect(await admin.get("/admin/stats/costs")).toEqual(costs);
  });
});

describe("GET /admin/health", () => {
  test("is healthy, degraded, then unhealthy with 503", async () => {
    const [one, two] = [bed.backend({ models: ["m"] }), bed.backend({ models: ["m"] })];
    await using gateway = await bed.process({
      config: {
        backends: [
          { name: "one", type: "vllm", url: one.url },
          { name: "two", type: "vllm", url: two.url },
        ],
        health_checks: { interval: "100ms", unhealthy_threshold: 1 },
      },
    });
    const admin = new AdminClient(gateway);
    const healthy = await waitFor("the models are known", async () => {
      const { status, body } = await admin.send("GET", "/admin/health");
      return status === 200 && body;
    });
    expect(healthy).toEqual({
      status: "healthy",
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      uptime: expect.any(Number),
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      services: {
        backend_service: { status: "healthy", message: "Backends that can be asked: 2 of 2." },
        model_service: { status: "healthy", message: "Models that can be served: 1." },
        proxy_service: { status: "healthy", message: expect.any(String) },
        health_service: { status: "healthy", message: expect.any(String) },
        storage_service: { status: "healthy", message: expect.any(String) },
      },
      metrics: {
        requests_per_second: expect.any(Number),
        error_rate: expect.any(Number),
        memory_usage_mb: expect.any(Number),
        cpu_usage_percent: expect.any(Number),
      },
    });
    const { memory_usage_mb, cpu_usage_percent } = healthy.metrics as Record<string, number>;
    expect(memory_usage_mb).toBeGreaterThan(10);
    expect(cpu_usage_percent).toBeGreaterThan(0);

    one.stop();
    await gateway.waitForHealth("one", false);
    expect(await admin.send("GET", "/admin/health")).toMatchObject({ status: 200, body: { status: "degraded" } });
    two.stop();
    await gateway.waitForHealth("two", false);
    expect(await admin.send("GET", "/admin/health")).toMatchObject({
      status: 503,
      body: { status: "unhealthy", services: { backend_service: { status: "unhealthy" } } },
    });
  });

  test("of a gateway without backends is unhealthy", async () => {
    await using gateway = await bed.process({
      config: { backends: [{ name: "a", type: "demo" }] },
    });
    const admin = new AdminClient(gateway);
    await admin.ok("DELETE", "/admin/backends/a");
    expect(await admin.send("GET", "/admin/health")).toMatchObject({ status: 503, body: { status: "unhealthy" } });
  });
});
