// The metrics of the registry under the names of the conventions.

import { expect, test } from "bun:test";
import type { Backend } from "../backends/backend.ts";
import { BACKEND_KINDS } from "../backends/kinds.ts";
import { INSTRUMENTS } from "../metrics/instruments.ts";
import { MetricsRegistry } from "../metrics/registry.ts";
import { metricsOf } from "./metric-points.ts";

const backend = (kind: keyof typeof BACKEND_KINDS, rootUrl: string, socketPath?: string): Backend =>
  ({ name: "b", kind: BACKEND_KINDS[kind], rootUrl, socketPath }) as Backend;

function sent(registry: MetricsRegistry, of: Backend | undefined = undefined) {
  return [...registry.families()].flatMap((family) => metricsOf(family, (name) => (name === "b" ? of : undefined)));
}

test("requests are told from both sides, but answers that nobody was asked for from one", () => {
  const registry = new MetricsRegistry();
  registry.histogram(INSTRUMENTS.requestDuration, "chat", "m", "b", "").observe(0.02);
  registry.histogram(INSTRUMENTS.requestDuration, "chat", "m", "", "").observe(0.5);
  registry.histogram(INSTRUMENTS.requestDuration, "chat", "m", "b", "status_503").observe(100);
  const [server, client] = sent(registry, backend("openai", "https://api.example.com"));
  expect(server).toMatchObject({ name: "gen_ai.server.request.duration", unit: "s", kind: "histogram" });
  expect(client).toMatchObject({ name: "gen_ai.client.operation.duration", unit: "s", kind: "histogram" });
  expect([server?.points.length, client?.points.length]).toEqual([3, 2]);
  const attributes = client?.points.map((point) => Object.fromEntries(point.attributes));
  const asked = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "m",
    "server.address": "api.example.com",
    "server.port": 443,
    backend: "b",
  };
  expect(attributes).toEqual([asked, { ...asked, "error.type": "status_503" }]);
});

test("OpenTelemetry puts what lies on a bound into the bucket below it, as the registry does", () => {
  const registry = new MetricsRegistry();
  const histogram = registry.histogram(INSTRUMENTS.requestDuration, "chat", "m", "b", "");
  for (const value of [0.01, 0.0100001, 81.92, 82]) histogram.observe(value);
  const [metric] = sent(registry);
  const [point] = (metric as unknown as { points: { counts: Float64Array; sum: number }[] }).points;
  expect([point?.counts[0], point?.counts[1], point?.counts.at(-2), point?.counts.at(-1)]).toEqual([1, 1, 1, 1]);
  histogram.observe(5);
  expect(point?.counts.reduce((sum, count) => sum + count, 0)).toBe(4);
});

test("everything else keeps its name; what has no number is left out", () => {
  const registry = new MetricsRegistry();
  registry.counter(INSTRUMENTS.requests, "chat", "m", "", "404").value = 3;
  registry.read(INSTRUMENTS.uptime, () => [{ labels: [], value: Number.NaN }]);
  registry.read(INSTRUMENTS.residentMemory, () => [{ labels: [], value: 7 }]);
  const metrics = sent(registry);
  expect(metrics.map(({ name, kind, unit }) => [name, kind, unit])).toEqual([
    ["signalbox_requests_total", "sum", "1"],
    ["signalbox_metrics_overflow_total", "sum", "1"],
    ["process_resident_memory_bytes", "gauge", "By"],
  ]);
  expect(metrics[0]?.points[0]?.attributes).toEqual([
    ["operation", "chat"],
    ["model", "m"],
    ["status", "404"],
  ]);
});

test.each([
  ["anthropic", "anthropic"],
  ["azure", "azure.ai.openai"],
  ["gemini", "gcp.gemini"],
  ["openai", "openai"],
  ["ollama", "ollama"],
] as const)("a backend of type %s is the provider %s", (kind, provider) => {
  const registry = new MetricsRegistry();
  registry.histogram(INSTRUMENTS.tokenUsage, "chat", "m", "b", "input").observe(5);
  const [usage] = sent(registry, backend(kind, "http://[::1]:8000"));
  expect(Object.fromEntries(usage?.points[0]?.attributes ?? [])).toMatchObject({
    "gen_ai.provider.name": provider,
    "gen_ai.token.type": "input",
    "server.address": "::1",
    "server.port": 8000,
  });
});

test("a socket is its own address, and what is embedded has none", () => {
  const registry = new MetricsRegistry();
  registry.histogram(INSTRUMENTS.tokenUsage, "chat", "m", "b", "input").observe(5);
  const attributesAt = (of: Backend) => Object.fromEntries(sent(registry, of)[0]?.points[0]?.attributes ?? []);
  expect(attributesAt(backend("vllm", "http://localhost", "/run/engine.sock"))["server.address"]).toBe(
    "/run/engine.sock",
  );
  expect(attributesAt(backend("demo", "demo"))["server.address"]).toBeUndefined();
});
