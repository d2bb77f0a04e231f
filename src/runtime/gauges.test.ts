// What is read from its owners at a scrape, beside what is counted by events.

import { expect, test } from "bun:test";
import type { BackendEntry } from "../backends/board.ts";
import { countGatewayEvents } from "../metrics/gateway-events.ts";
import { MetricsRegistry } from "../metrics/registry.ts";
import { VERSION } from "../names.ts";
import { addGauges, type GaugeSources } from "./gauges.ts";

const lines = (text: string) => text.trimEnd().split("\n");

const BACKEND = {
  backend: { name: "b", enabled: true, kind: { name: "vllm" } },
  available: true,
  health: "ready",
  counters: { inFlight: 2, totalRequests: 10, failedRequests: 1, latencyMs: 250 },
} as BackendEntry;

function sources(entries: readonly BackendEntry[]): GaugeSources {
  let nowMs = 1_000_000;
  return {
    fleet: { board: { entries }, circuits: { state: () => "half_open", letsThrough: () => true } },
    cache: () => ({ stats: () => ({ entries: 1, bytes: 2, evictions: 3 }) as never }),
    redis: () => [
      { use: "response_cache", isThere: true },
      { use: "rate_limiting", isThere: false },
    ],
    files: () => ({ count: 4, bytes: 5, owners: [] }),
    batches: () => 7,
    kvIndex: () => ({
      stats: () => ({
        entries: 6,
        maxEntries: 10,
        bytes: 800,
        maxBytes: 900,
        hits: 2,
        lookups: 5,
        hitRate: 0.4,
        backends: [{ backend: "b", entries: 6, distrusted: true }],
        eventSources: [{ backend: "b", connected: true, events: 8, dropped: 1, lastEventMs: 1, lastError: undefined }],
      }),
      clear: () => 0,
    }),
    otlp: { isUp: (signal) => signal === "traces" },
    queue: () => undefined,
    ledger: () => ({ accounts: () => [] }) as never,
    configVersion: () => 7,
    configReloadOk: () => false,
    openStreams: () => 3,
    workers: {
      numbers: () => [],
      pastCpuSeconds: () => 0,
      rows: () => [{ state: "running" }, { state: "running" }, { state: "draining" }],
      restarts: () => ({ crash: 2, request: 1 }),
    },
    eventLoopLag: () => 0.002,
    wallTime: () => {
      const read = nowMs;
      nowMs = 1_012_000;
      return read;
    },
  };
}

test("what is read at the scrape, and what is counted by events", async () => {
  const registry = new MetricsRegistry();
  const events = countGatewayEvents(registry);
  addGauges(registry, sources([BACKEND]));
  events.rateLimited("client");
  events.circuitChanged({ backend: "b", to: "open" });
  events.configReloaded(false);
  const text = lines(await registry.expose());
  for (const line of [
    'signalbox_backend_up{backend="b",kind="vllm"} 1',
    'signalbox_backend_health{backend="b",state="ready"} 1',
    'signalbox_backend_health{backend="b",state="down"} 0',
    'signalbox_backend_circuit_state{backend="b",state="half_open"} 1',
    'signalbox_backend_requests_in_flight{backend="b"} 2',
    'signalbox_backend_latency_seconds{backend="b"} 0.25',
    'signalbox_backend_circuit_changes_total{backend="b",to="open"} 1',
    'signalbox_rate_limit_refusals_total{scope="client"} 1',
    'signalbox_config_reloads_total{result="failure"} 1',
    'signalbox_config_reloads_total{result="success"} 0',
    "signalbox_config_last_reload_successful 0",
    "signalbox_config_version 7",
    "signalbox_open_streams 3",
    "signalbox_uptime_seconds 12",
    `signalbox_build_info{version="${VERSION}",runtime="bun ${Bun.version}"} 1`,
    "signalbox_response_cache_entries 1",
    "signalbox_files 4",
    'signalbox_kv_index_entries{backend="b"} 6',
    'signalbox_kv_index_distrusted{backend="b"} 1',
    "signalbox_kv_index_bytes 800",
    'signalbox_kv_index_lookups_total{result="miss"} 3',
    'signalbox_kv_index_event_sources_connected{backend="b"} 1',
    'signalbox_kv_index_events_total{backend="b"} 8',
    'signalbox_kv_index_events_dropped_total{backend="b"} 1',
    "signalbox_files_bytes 5",
  ]) {
    expect(text).toContain(line);
  }
  expect(text.find((line) => line.startsWith("process_resident_memory_bytes "))).toMatch(/ \d+$/);
});

test("a source in trouble costs its own family only", async () => {
  const registry = new MetricsRegistry();
  addGauges(registry, {
    ...sources([BACKEND]),
    openStreams: () => {
      throw new Error("broken");
    },
  });
  expect(await registry.expose()).not.toContain("signalbox_open_streams");
  expect(await registry.expose()).toContain("signalbox_config_version 7");
});

test("every line is one that Prometheus reads, whatever backends are called", async () => {
  const registry = new MetricsRegistry();
  const names = ['quo"te', "back\\slash", "line\nbreak", 'x",le="1'];
  const counters = { ...BACKEND.counters, latencyMs: undefined };
  const odd = names.map((name) => ({ ...BACKEND, backend: { ...BACKEND.backend, name }, counters }));
  countGatewayEvents(registry);
  addGauges(registry, sources([BACKEND, ...odd]));
  const LABEL = '[a-z_]+="(?:[^"\\\\\\n]|\\\\["\\\\n])*"';
  const SAMPLE = new RegExp(`^([a-z_]+)(\\{${LABEL}(?:,${LABEL})*\\})? (\\+Inf|-?[0-9.]+(?:e[+-]?\\d+)?)$`);
  const samples = lines(await registry.expose()).filter((line) => !line.startsWith("#"));
  expect(samples.filter((line) => !SAMPLE.test(line))).toEqual([]);
  expect(samples.length).toBeGreaterThan(50);
});
