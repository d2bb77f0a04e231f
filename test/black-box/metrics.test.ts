// GET /metrics and GET /admin/metrics/history: what Prometheus reads, and what the gateway keeps of it itself.

import { describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, failure } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

async function start(metrics: ConfigDocument["metrics"] = {}, more: ConfigDocument = {}) {
  const backend = bed.backend({ answer: chat("x") });
  const gateway = await bed.gateway({
    config: { backends: [{ name: "a", type: "vllm", url: backend.url, models: ["m"] }], metrics, ...more },
    awaitHealth: more.admin === undefined,
  });
  return { backend, gateway, admin: new AdminClient(gateway) };
}

async function scrape(gateway: Gateway, path = "/metrics"): Promise<string> {
  const response = await gateway.fetch(path);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  return await response.text();
}

/** The value of a series as it is written; undefined where there is none. */
function readSeries(text: string, series: string): number | undefined {
  const line = text.split("\n").find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

const SAMPLE =
  /^[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-zA-Z_]\w*="(\\.|[^"\\])*",?)*\})? (-?\d+(\.\d+)?(e[+-]?\d+)?|NaN|[+-]Inf)$/;

describe("GET /metrics", () => {
  test("shows requests, tokens, backends and the gateway itself, every line in the text format", async () => {
    const { backend, gateway } = await start({}, { retry: { max_attempts: 1 } });
    await (await gateway.chat()).text();
    backend.queue(failure(500));
    await (await gateway.chat()).text();
    const text = await scrape(gateway);
    const chatLabels = 'gen_ai_operation_name="chat",gen_ai_request_model="m",backend="a"';
    expect(readSeries(text, 'signalbox_requests_total{operation="chat",model="m",backend="a",status="200"}')).toBe(1);
    expect(readSeries(text, 'signalbox_requests_total{operation="chat",model="m",backend="a",status="500"}')).toBe(1);
    expect(readSeries(text, 'signalbox_tokens_total{model="m",backend="a",type="input"}')).toBe(3);
    expect(readSeries(text, `gen_ai_server_request_duration_seconds_count{${chatLabels},error_type=""}`)).toBe(1);
    expect(
      readSeries(text, `gen_ai_server_request_duration_seconds_count{${chatLabels},error_type="status_500"}`),
    ).toBe(1);
    expect(readSeries(text, 'signalbox_backend_up{backend="a",kind="vllm"}')).toBe(1);
    expect(readSeries(text, 'signalbox_backend_attempts_total{backend="a"}')).toBe(2);
    expect(readSeries(text, "signalbox_config_version")).toBe(1);
    expect(readSeries(text, "process_resident_memory_bytes")).toBeGreaterThan(10_000_000);

    const lines = text.split("\n");
    expect(lines.pop()).toBe("");
    expect(lines.filter((line) => !line.startsWith("# ") && !SAMPLE.test(line))).toEqual([]);
    const heads = lines.filter((line) => line.startsWith("# TYPE ")).map((line) => line.split(" ")[2]);
    expect(new Set(heads).size).toBe(heads.length);
  });

  test("labels are bounded, whatever clients send", async () => {
    const { gateway } = await start();
    const nasty = ['"}\n', "\\", "\u{1f600}", "x".repeat(5_000)];
    const made = Array.from({ length: 600 }, (_, index) => `${nasty[index % nasty.length]}${index}`);
    for (let from = 0; from < made.length; from += 50) {
      await Promise.all(made.slice(from, from + 50).map(async (model) => (await gateway.chat({ model })).text()));
    }
    const text = await scrape(gateway);
    const models = new Set([...text.matchAll(/[{,]model="((?:\\.|[^"\\])*)"/g)].map(([, model]) => model));
    expect([...models]).toEqual(["(other)"]);
    expect(text.length).toBeLessThan(100_000);
  });

  test("has credentials of its own, which are not those of the admin API", async () => {
    const { gateway } = await start(
      { auth: { enabled: true, username: "prometheus", password: "sekret-metrics" } },
      { admin: { auth: { method: "bearer_token", token: "sekret-token" } } },
    );
    const basic = (text: string) => ({ headers: { Authorization: `Basic ${btoa(text)}` } });
    const refused = await gateway.fetch("/metrics");
    expect(refused.headers.get("www-authenticate")).toStartWith("Basic ");
    await expectError(refused, 401);
    await expectError(await gateway.fetch("/metrics", basic("prometheus:wrong")), 401);
    const bearer = { headers: { Authorization: "Bearer sekret-token" } };
    await expectError(await gateway.fetch("/metrics", bearer), 401);
    expect((await gateway.fetch("/metrics", basic("prometheus:sekret-metrics"))).status).toBe(200);
    await expectError(await gateway.fetch("/admin/stats", basic("prometheus:sekret-metrics")), 401);
    const changed = await gateway.fetch("/admin/config/metrics", {
      method: "PATCH",
      headers: { "Content-Type": "application/json", ...bearer.headers },
      body: JSON.stringify({ auth: { password: "sekret-other" } }),
    });
    expect(changed.status).toBe(200);
    await changed.text();
    await expectError(await gateway.fetch("/metrics", basic("prometheus:sekret-metrics")), 401);
    expect((await gateway.fetch("/metrics", basic("prometheus:sekret-other"))).status).toBe(200);
  });

  test("shows the response cache that answers now, and none while it is switched off", async () => {
    const { gateway, admin } = await start({}, { response_cache: { enabled: true } });
    const change = (response_cache: object) => admin.ok("PATCH", "/admin/config/response_cache", response_cache);
    const ask = async (...contents: string[]): Promise<void> => {
      for (const content of contents) await (await gateway.chat({ messages: [{ role: "user", content }] })).text();
    };
    const read = async () => {
      const text = await scrape(gateway);
      const name = (rest: string) => readSeries(text, `signalbox_response_cache_${rest}`);
      return { entries: name("entries"), bytes: name("bytes"), evictions: name("evictions_total") };
    };
    const empty = { entries: 0, bytes: 0, evictions: 0 };

    expect(await read()).toEqual(empty);
    await ask("one", "two");
    expect(await read()).toEqual({ entries: 2, bytes: expect.any(Number), evictions: 0 });
    await change({ capacity: 1 });
    expect(await read()).toEqual({ entries: 1, bytes: expect.any(Number), evictions: 1 });
    await ask("three", "four");
    const { bytes, evictions } = await admin.get("/admin/response-cache");
    expect(await read()).toEqual({ entries: 1, bytes: bytes as number, evictions: 3 });
    expect([(bytes as number) > 0, evictions]).toEqual([true, 3]);

    const none = { entries: undefined, bytes: undefined, evictions: undefined };
    await change({ enabled: false });
    expect(await read()).toEqual(none);
    await change({ enabled: true });
    expect(await read()).toEqual(empty);
  });

  test("counts each refused request once, by whose limit it was", async () => {
    const key = "sk-sekret-limited";
    const { gateway, admin } = await start({}, { api_keys: { keys: [{ key }] }, rate_limiting: { enabled: true } });
    const wide = { requests_per_second: 10_000, burst_capacity: 10_000 };
    const narrow = { requests_per_second: 1, burst_capacity: 2 };
    const headers = { Authorization: `Bearer ${key}` };
    const refusals = { client: 0, key: 0, global: 0, backend: 0 };
    const scopes = { per_client: "client", per_api_key: "key", global: "global", per_backend: "backend" } as const;
    for (const [limit, scope] of Object.entries(scopes)) {
      const limits = { per_client: wide, per_api_key: wide, global: wide, per_backend: wide, [limit]: narrow };
      await admin.ok("PATCH", "/admin/config/rate_limiting", { limits });
      const answers = await Promise.all(Array.from({ length: 12 }, () => gateway.chat({}, { headers })));
      for (const { status } of answers) if (status === 429) refusals[scope]++;
      expect(refusals[scope]).toBeGreaterThan(0);
      const text = await scrape(gateway);
      const counted = Object.keys(refusals).map((each) => [
        each,
        readSeries(text, `signalbox_rate_limit_refusals_total{scope="${each}"}`),
      ]);
      expect(Object.fromEntries(counted)).toEqual(refusals);
    }
  });

  test("another path, and none at all", async () => {
    const { gateway, admin } = await start({ endpoint: "/internal/metrics" });
    await scrape(gateway, "/internal/metrics");
    await expectError(await gateway.fetch("/metrics"), 404);
    await admin.ok("PATCH", "/admin/config/metrics", { enabled: false });
    const error = await expectError(await gateway.fetch("/internal/metrics"), 404);
    expect(error.message).toContain("metrics.enabled");
  });
});

describe("GET /admin/metrics/history", () => {
  const path = (query: Record<string, string>) => `/admin/metrics/history?${new URLSearchParams(query)}`;
  type Sample = { ts_ms: number; labels: Record<string, string>; value: number; kind: string };

  test("samples are kept, asked for in every way, and survive a restart", async () => {
    const { gateway, admin } = await start({ persistence: { snapshot_interval_seconds: 1 } });
    await (await gateway.chat()).text();
    const metric = "signalbox_requests_total";
    const answer = await waitFor("two samples of the request", async () => {
      const found = await admin.get(path({ metric }));
      return (found.row_count as number) >= 2 && found;
    });
    expect(Object.keys(answer)).toEqual(["metric", "from_ms", "to_ms", "row_count", "limit", "samples"]);
    const [first, second] = answer.samples as [Sample, Sample];
    expect(first).toEqual({
      ts_ms: expect.any(Number),
      labels: { backend: "a", model: "m", operation: "chat", status: "200" },
      value: 1,
      kind: "counter",
    });
    expect(second.ts_ms).toBeGreaterThan(first.ts_ms);
    const from = String(first.ts_ms);
    expect(await admin.get(path({ metric, from, to: String(second.ts_ms) }))).toMatchObject({ samples: [first] });
    expect(await admin.get(path({ metric, from: new Date(first.ts_ms).toISOString(), limit: "1" }))).toMatchObject({
      row_count: 1,
      limit: 1,
      samples: [first],
    });
    expect(await admin.get(path({ metric: "no_such_metric" }))).toMatchObject({ row_count: 0, samples: [] });
    const duration = "gen_ai_server_request_duration_seconds";
    const { samples } = await admin.get(path({ metric: duration }));
    expect(new Set((samples as Sample[]).map(({ kind }) => kind))).toEqual(
      new Set(["histogram_bucket", "histogram_sum", "histogram_count"]),
    );
    expect((samples as Sample[]).find(({ kind }) => kind === "histogram_bucket")?.labels.le).toEqual(
      expect.any(String),
    );

    expect(existsSync(join(gateway.folder, "data", "metrics.db"))).toBe(true);
    await gateway.restart();
    expect(await admin.get(path({ metric, from, to: String(second.ts_ms) }))).toMatchObject({ samples: [first] });
    // The history is never read back into the running metrics.
    expect(await scrape(gateway)).not.toContain("signalbox_requests_total{");
  });

  test.each([
    ["metric", {}],
    ["metric", { metric: "" }],
    ["metric", { metric: "x".repeat(1_000) }],
    ["from", { metric: "up", from: "2", to: "1" }],
    ["from", { metric: "up", from: "1", to: "1" }],
    ["from", { metric: "up", from: "soon" }],
    ["to", { metric: "up", to: "1e400" }],
    ["limit", { metric: "up", limit: "0" }],
    ["limit", { metric: "up", limit: "-1" }],
  ])("400 names '%s' in %j", async (param, query) => {
    const { admin } = await shared;
    expect((await admin.refused(400, "GET", path(query))).param).toBe(param);
  });
  const shared = start();

  test("404 while it is switched off", async () => {
    const { gateway, admin } = await start({ persistence: { enabled: false } });
    expect((await admin.refused(404, "GET", path({ metric: "up" }))).message).toContain("metrics.persistence.enabled");
    expect(existsSync(join(gateway.folder, "data", "metrics.db"))).toBe(false);
  });

  test("a file that is no database hurts no request, and is set aside", async () => {
    const { gateway, admin } = await start({ persistence: { snapshot_interval_seconds: 1 } });
    await gateway.stop();
    const file = join(gateway.folder, "data", "metrics.db");
    for (const suffix of ["", "-wal", "-shm"]) writeFileSync(`${file}${suffix}`, "not a database".repeat(1_000));
    await gateway.restart();
    expect((await gateway.chat()).status).toBe(200);
    await waitFor("the broken file is set aside", () => existsSync(`${file}.broken`));
    await waitFor(
      "samples are kept again",
      async () => (await admin.get(path({ metric: "signalbox_uptime_seconds" }))).row_count !== 0,
    );
  });
});
