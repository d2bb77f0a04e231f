// A real Prometheus scrapes the gateway: it takes every metric, and answers questions about them.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { INSTRUMENTS, type Instrument } from "../../src/metrics/instruments.ts";
import type { Gateway } from "../support/gateway.ts";
import { chat, chatEvents, eventStream, failure, sseEvent } from "../support/openai-answers.ts";
import { checkMetrics, PrometheusServer } from "../support/prometheus-server.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

/** Letters that the text format must escape, and others. */
const ODD_MODEL = 'org/odd "model" \\n\u{1f600}';
const CREDENTIALS = { username: "prometheus", password: "sekret:metrics" };
const PATH = "/internal/metrics";

const bed = createTestBed();
const backend = bed.backend({ answer: chat("x") });
let gateway: Gateway;
let prometheus: PrometheusServer;

beforeAll(async () => {
  gateway = await bed.gateway({
    config: {
      backends: [{ name: "engine", type: "vllm", url: backend.url, models: ["m", ODD_MODEL] }],
      metrics: { endpoint: PATH, auth: { enabled: true, ...CREDENTIALS } },
      retry: { max_attempts: 1 },
    },
  });
  for (let each = 0; each < 3; each++) await (await gateway.chat()).text();
  await (await gateway.chat({ model: ODD_MODEL })).text();
  backend.queue(failure(500));
  await (await gateway.chat()).text();
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
  const events = chatEvents(["a", "b"], { done: false });
  backend.queue(eventStream([...events, sseEvent({ choices: [], usage }), "data: [DONE]\n\n"]));
  await (await gateway.chat({ stream: true })).text();
  prometheus = await PrometheusServer.start({ address: `127.0.0.1:${gateway.port}`, path: PATH, ...CREDENTIALS });
});
afterAll(() => prometheus?.stop());

async function exposition(): Promise<string> {
  const authorization = `Basic ${btoa(`${CREDENTIALS.username}:${CREDENTIALS.password}`)}`;
  const response = await gateway.fetch(PATH, { headers: { Authorization: authorization } });
  expect(response.status).toBe(200);
  return await response.text();
}

/** The value of an expression that has one series. */
async function value(expression: string): Promise<number> {
  const series = await waitFor(
    `Prometheus knows ${expression}`,
    async () => {
      const found = await prometheus.query(expression);
      return found.length > 0 && found;
    },
    { intervalMs: 100 },
  );
  expect(series).toHaveLength(1);
  return Number(series[0]?.value[1]);
}

test("promtool finds nothing to complain about", async () => {
  expect(await checkMetrics(await exposition())).toEqual([]);
});

test("the scrape succeeds, with the credentials of metrics.auth", async () => {
  expect(await value('up{job="signalbox"}')).toBe(1);
  const { activeTargets } = await prometheus.api<{ activeTargets: { health: string; lastError: string }[] }>("targets");
  expect(activeTargets).toMatchObject([{ health: "up", lastError: "" }]);
});

test("its query API returns our series", async () => {
  const request = 'operation="chat",model="m",backend="engine"';
  expect(await value(`signalbox_requests_total{${request},status="200"}`)).toBe(4);
  expect(await value(`signalbox_requests_total{${request},status="500"}`)).toBe(1);
  expect(await value('sum(signalbox_tokens_total{model="m",type=~"input|output"})')).toBe(20);
  expect(await value('signalbox_backend_up{backend="engine",kind="vllm"}')).toBe(1);
  expect(await value("signalbox_config_version")).toBe(1);
  expect(await value("time() - process_start_time_seconds")).toBeLessThan(300);
  const [odd] = await prometheus.query('signalbox_requests_total{model=~"org/.*"}');
  expect(odd).toMatchObject({ metric: { model: ODD_MODEL, status: "200" }, value: [expect.any(Number), "1"] });
});

test("it computes quantiles from our histograms", async () => {
  const ofModel = 'gen_ai_request_model="m"';
  const quantile = await value(
    `histogram_quantile(0.95, sum by (le) (gen_ai_server_request_duration_seconds_bucket{${ofModel}}))`,
  );
  expect(quantile).toBeGreaterThan(0);
  expect(quantile).toBeLessThan(60);
  expect(await value(`sum(gen_ai_server_request_duration_seconds_count{${ofModel}})`)).toBe(5);
  expect(await value(`gen_ai_server_time_to_first_token_seconds_count{${ofModel}}`)).toBe(1);
  expect(await value(`sum(gen_ai_client_token_usage_sum{${ofModel},gen_ai_token_type="output"})`)).toBe(8);
});

test("it sees a counter grow between two scrapes", async () => {
  const expression = 'signalbox_requests_total{operation="chat",model="m",backend="engine",status="200"}';
  const before = await value(expression);
  await (await gateway.chat()).text();
  await waitFor("the next scrape has one more", async () => (await value(expression)) === before + 1, {
    intervalMs: 200,
  });
});

test("it knows type and help of every metric that is shown", async () => {
  await value("up");
  const shown = new Set([...(await exposition()).matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
  const metadata = await prometheus.api<Record<string, { type: string; help: string }[]>>("metadata");
  const instruments = Object.values<Instrument>(INSTRUMENTS).filter(({ name }) => shown.has(name));
  expect(instruments.length).toBeGreaterThan(20);
  expect(shown.size).toBe(instruments.length);
  for (const { name, type, help } of instruments)
    expect({ name, ...metadata[name]?.[0] }).toMatchObject({ name, type, help });
});
