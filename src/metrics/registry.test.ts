import { describe, expect, test } from "bun:test";
import { finishedRecord, type RequestEnd } from "../../test/support/request-records.ts";
import { StatsCollector } from "../stats/collector.ts";
import type { RequestRecord } from "../stats/request-record.ts";
import { countGatewayEvents } from "./gateway-events.ts";
import { INSTRUMENTS, type Instrument } from "./instruments.ts";
import { createObserver } from "./observer.ts";
import { MAX_SERIES, MetricsRegistry } from "./registry.ts";
import { createRequestMetrics } from "./request-metrics.ts";

function setUp() {
  const registry = new MetricsRegistry();
  const collector = new StatsCollector({
    settings: { enabled: true, retention_window: 86_400_000, token_tracking: true, currency: "USD" },
    clock: { now: () => 0, wallTime: () => 1_800_000_000_000 },
    priceOf: () => ({ inputTokens: 1, outputTokens: 10 }),
  });
  const byKey = { isOn: true };
  return {
    registry,
    byKey,
    observer: createObserver(
      collector,
      createRequestMetrics(registry, () => byKey.isOn),
    ),
  };
}

function request(changes: Partial<RequestEnd> = {}): RequestRecord {
  const usage = { input: { total: 100, cacheRead: 60 }, output: { total: 11, reasoning: 4 } };
  return finishedRecord({
    operation: "messages",
    model: "m",
    backend: "b",
    status: 200,
    outcome: changes.failure === undefined && (changes.status ?? 200) < 400 ? "succeeded" : "failed",
    durationMs: 1500,
    stream: false,
    usage,
    attempts: 1,
    ...changes,
  });
}

const lines = (text: string) => text.split("\n");

describe("metrics", () => {
  test("names follow the conventions", async () => {
    const names = new Set<string>();
    for (const { name, type, help, labels, buckets } of Object.values<Instrument>(INSTRUMENTS)) {
      expect(name).toMatch(/^(signalbox|gen_ai|process)_[a-z0-9_]*[a-z0-9]$/);
      expect(names.has(name)).toBe(false);
      names.add(name);
      expect(name.endsWith("_total")).toBe(type === "counter");
      expect(help).toMatch(/^[A-Z0-9].*\.$/);
      expect(help).not.toMatch(/[\\\n]/);
      for (const label of labels) expect(label).toMatch(/^[a-z][a-z0-9_]*$/);
      expect(labels).not.toContain("le");
      expect(buckets !== undefined).toBe(type === "histogram");
      expect(buckets ?? []).toEqual([...(buckets ?? [])].sort((a, b) => a - b));
    }
  });

  test("a plain request", async () => {
    const { registry, observer } = setUp();
    observer.finished(request());
    const text = lines(await registry.expose());
    const labels = 'gen_ai_operation_name="chat",gen_ai_request_model="m",backend="b"';
    for (const line of [
      "# TYPE gen_ai_server_request_duration_seconds histogram",
      `gen_ai_server_request_duration_seconds_bucket{${labels},error_type="",le="1.28"} 0`,
      `gen_ai_server_request_duration_seconds_bucket{${labels},error_type="",le="2.56"} 1`,
      `gen_ai_server_request_duration_seconds_bucket{${labels},error_type="",le="+Inf"} 1`,
      `gen_ai_server_request_duration_seconds_sum{${labels},error_type=""} 1.5`,
      `gen_ai_server_request_duration_seconds_count{${labels},error_type=""} 1`,
      `gen_ai_client_token_usage_sum{${labels},gen_ai_token_type="output"} 11`,
      'signalbox_requests_total{operation="messages",model="m",backend="b",status="200"} 1',
      'signalbox_tokens_total{model="m",backend="b",type="input"} 100',
      'signalbox_tokens_total{model="m",backend="b",type="cache_read"} 60',
      'signalbox_tokens_total{model="m",backend="b",type="reasoning"} 4',
      'signalbox_cost_total{model="m",backend="b"} 0.21',
      'signalbox_retries_total{model="m",backend="b"} 0',
      "signalbox_metrics_overflow_total 0",
    ]) {
      expect(text).toContain(line);
    }
    expect(await registry.expose()).not.toContain("time_to_first_token");
  });

  test("streams, failures, retries, fallbacks, cache", async () => {
    const { registry, observer } = setUp();
    const retried = request({ stream: true, firstByteMs: 500, attempts: 3, cache: "MISS" });
    for (const backend of ["bad", "b", "b"]) retried.attempt(backend, "m");
    observer.attempted("bad", "failed", "status_503", 2000, undefined);
    observer.attempted("b", "succeeded", undefined, 4000, 500);
    observer.finished(retried);
    observer.finished(request({ stream: true, firstByteMs: 1, cache: "HIT" }));
    observer.finished(
      request({ status: 503, usage: undefined, failure: "status_503", fallbackReason: "error_code_503" }),
    );
    observer.finished(request({ status: 400, usage: undefined, isShared: true }));
    const text = lines(await registry.expose());
    const labels = 'gen_ai_operation_name="chat",gen_ai_request_model="m",backend="b"';
    for (const line of [
      `gen_ai_server_time_to_first_token_seconds_count{${labels}} 1`,
      `gen_ai_server_time_to_first_token_seconds_sum{${labels}} 0.5`,
      `gen_ai_server_time_per_output_token_seconds_sum{${labels}} 0.1`,
      `gen_ai_server_request_duration_seconds_count{${labels},error_type="status_503"} 1`,
      `gen_ai_server_request_duration_seconds_count{${labels},error_type="status_400"} 1`,
      'signalbox_tokens_total{model="m",backend="b",type="input"} 100',
      'signalbox_retries_total{model="m",backend="b"} 1',
      'signalbox_retries_total{model="m",backend="bad"} 1',
      'signalbox_backend_attempt_duration_seconds_sum{backend="bad",error_type="status_503"} 2',
      'signalbox_backend_attempt_duration_seconds_sum{backend="b",error_type=""} 4',
      'signalbox_backend_time_to_first_token_seconds_sum{backend="b"} 0.5',
      'signalbox_fallbacks_total{model="m",reason="error_code_503"} 1',
      'signalbox_response_cache_requests_total{result="hit"} 1',
      'signalbox_response_cache_requests_total{result="miss"} 1',
      'signalbox_deduplicated_requests_total{model="m"} 1',
    ]) {
      expect(text).toContain(line);
    }
  });

  test("each key by its outcomes, tokens and costs, under the organization that it has now, while that is wanted", async () => {
    const { registry, observer, byKey } = setUp();
    const key = { keyId: "team-a", organizationId: "org-1" };
    observer.finished(request(key));
    observer.finished(request({ ...key, status: 502, outcome: "failed", failure: "reset", usage: undefined }));
    observer.turnedAway(key);
    observer.turnedAway({ keyId: undefined, organizationId: undefined });
    observer.finished(request({ keyId: "team-b" }));
    observer.finished(request({ ...key, organizationId: "org-2" }));
    byKey.isOn = false;
    observer.finished(request(key));
    observer.turnedAway(key);
    const text = lines(await registry.expose()).filter((line) => line.startsWith("signalbox_key_"));
    expect(text.sort()).toEqual([
      'signalbox_key_cost_total{key="team-a",organization="org-1"} 0.21',
      'signalbox_key_cost_total{key="team-a",organization="org-2"} 0.21',
      'signalbox_key_cost_total{key="team-b",organization=""} 0.21',
      'signalbox_key_requests_total{key="team-a",organization="org-1",outcome="failed"} 1',
      'signalbox_key_requests_total{key="team-a",organization="org-1",outcome="refused"} 1',
      'signalbox_key_requests_total{key="team-a",organization="org-1",outcome="succeeded"} 1',
      'signalbox_key_requests_total{key="team-a",organization="org-2",outcome="succeeded"} 1',
      'signalbox_key_requests_total{key="team-b",organization="",outcome="succeeded"} 1',
      ...["org-1", "org-2"].flatMap((organization) => [
        `signalbox_key_tokens_total{key="team-a",organization="${organization}",type="input"} 100`,
        `signalbox_key_tokens_total{key="team-a",organization="${organization}",type="output"} 11`,
      ]),
      'signalbox_key_tokens_total{key="team-b",organization="",type="input"} 100',
      'signalbox_key_tokens_total{key="team-b",organization="",type="output"} 11',
    ]);
  });

  test("every line is one that Prometheus reads, whatever clients call their models", async () => {
    const { registry, observer } = setUp();
    for (const model of ['quo"te', "back\\slash", "line\nbreak", "tab\t\u2028", "lone \ud800", "\u0000", 'x",le="1']) {
      observer.finished(request({ model, stream: true, firstByteMs: 3 }));
    }
    countGatewayEvents(registry);
    const LABEL = '[a-z_]+="(?:[^"\\\\\\n]|\\\\["\\\\n])*"';
    const SAMPLE = new RegExp(`^([a-z_]+)(\\{${LABEL}(?:,${LABEL})*\\})? (\\+Inf|-?[0-9.]+(?:e[+-]?\\d+)?)$`);
    const seen = new Set<string>();
    let family = "";
    for (const line of (await registry.expose()).trimEnd().split("\n")) {
      if (line.startsWith("# TYPE ")) family = line.split(" ")[2] as string;
      if (line.startsWith("#")) continue;
      expect(line).toMatch(SAMPLE);
      const series = line.slice(0, line.lastIndexOf(" "));
      expect(seen.has(series)).toBe(false);
      seen.add(series);
      expect(series.startsWith(family)).toBe(true);
    }
    expect((await registry.expose()).endsWith("\n")).toBe(true);
    for (const { labels } of registry.samples()) expect(JSON.stringify(JSON.parse(labels))).toBe(labels);
  });

  test("the number of series is bounded", async () => {
    const { registry, observer } = setUp();
    for (let index = 0; index < 3 * MAX_SERIES; index++) {
      registry.counter(INSTRUMENTS.fallbacks, `m${index}`, "timeout").value++;
      observer.finished(request({ model: `m${index}`, backend: `b${index % 500}` }));
    }
    const text = lines(await registry.expose());
    const fallbacks = text.filter((line) => line.startsWith("signalbox_fallbacks_total{"));
    expect(fallbacks.length).toBe(MAX_SERIES + 1);
    expect(fallbacks).toContain(`signalbox_fallbacks_total{model="(other)",reason="(other)"} ${2 * MAX_SERIES}`);
    const requests = text.filter((line) => line.startsWith("signalbox_requests_total{"));
    expect(requests.length).toBeLessThanOrEqual(MAX_SERIES + 1);
    const total = requests.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
    expect(total).toBe(3 * MAX_SERIES);
  });

  test("samples say the same as the text", async () => {
    const { registry, observer } = setUp();
    observer.finished(request());
    const samples = [...registry.samples()].filter(({ metric }) => metric === "gen_ai_server_request_duration_seconds");
    expect(samples.length).toBe(15 + 2);
    expect(samples.at(-1)).toEqual({
      metric: "gen_ai_server_request_duration_seconds",
      labels: '{"backend":"b","error_type":"","gen_ai_operation_name":"chat","gen_ai_request_model":"m"}',
      value: 1,
      kind: "histogram_count",
    });
    expect(samples[14]?.labels).toContain('"le":"+Inf"');
    const requests = [...registry.samples()].filter(({ metric }) => metric === "signalbox_requests_total");
    expect(requests).toMatchObject([{ value: 1, kind: "counter" }]);
  });
});

describe("docs/metrics.md", () => {
  test("has a row for every metric, and none for others", async () => {
    const text = await Bun.file(new URL("../../docs/metrics.md", import.meta.url)).text();
    const rows = Object.values<Instrument>(INSTRUMENTS).map(
      ({ name, type, labels, help }) =>
        `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${help} |`,
    );
    expect(text.split("\n").filter((line) => line.startsWith("| `"))).toEqual(rows);
  });
});
