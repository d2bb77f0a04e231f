// The Statistics record of the admin API, made of what the collector has counted.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { ModelSums, Percentiles, StatsCollector } from "../stats/collector.ts";
import { averageLatency, type Sums } from "../stats/windows.ts";
import type { StatsWindow } from "./query.ts";

export function statsView(collector: StatsCollector, window: StatsWindow) {
  return {
    ...frame(collector, window),
    overall: overallView(collector, window),
    models: modelRows(collector, window),
    backends: backendRows(collector, window),
  };
}

export function modelStatsView(collector: StatsCollector, window: StatsWindow) {
  return { ...frame(collector, window), models: modelRows(collector, window) };
}

export function backendStatsView(collector: StatsCollector, window: StatsWindow) {
  return { ...frame(collector, window), backends: backendRows(collector, window) };
}

export function resetStats(collector: StatsCollector) {
  collector.reset();
  return { success: true as const, message: "The statistics were cleared." };
}

/** Throws 404 while statistics are switched off. */
export function requireStats(collector: StatsCollector): StatsCollector {
  if (collector.settings.enabled) return collector;
  throw new GatewayError(
    ERRORS.routeNotFound,
    "Statistics are switched off. Set admin.stats.enabled to true to have them.",
  );
}

function frame(collector: StatsCollector, window: StatsWindow) {
  return { uptime_seconds: collector.uptimeSeconds, window: window.name };
}

function overallView(collector: StatsCollector, { ms }: StatsWindow) {
  const sums = collector.overall(ms);
  return {
    ...counts(sums),
    avg_latency_ms: averageLatency(sums),
    ...latencies(collector.percentiles(ms)),
    ...tokens(sums),
    tokens_per_sec_avg: tokensPerSecond(sums),
  };
}

function modelRows(collector: StatsCollector, { ms }: StatsWindow) {
  return collector.models(ms).map((row) => ({ model_id: row.name, ...rowView(row) }));
}

function backendRows(collector: StatsCollector, { ms }: StatsWindow) {
  return collector.backends(ms).map(({ latency, firstToken, ...row }) => ({
    backend_name: row.name,
    ...rowView(row),
    ...latencies(latency),
    // Null where it has not streamed.
    p50_first_token_ms: firstToken === undefined ? null : hundredths(firstToken.p50),
    p95_first_token_ms: firstToken === undefined ? null : hundredths(firstToken.p95),
    p99_first_token_ms: firstToken === undefined ? null : hundredths(firstToken.p99),
  }));
}

function latencies({ p50, p95, p99 }: Percentiles) {
  return { p50_latency_ms: hundredths(p50), p95_latency_ms: hundredths(p95), p99_latency_ms: hundredths(p99) };
}

function rowView(row: ModelSums) {
  return {
    ...counts(row),
    ...tokens(row),
    avg_latency_ms: averageLatency(row),
    avg_tokens_per_sec: tokensPerSecond(row),
    last_used: new Date(row.lastUsedMs).toISOString(),
  };
}

function counts({ requests, failed, refused, succeeded }: Sums) {
  return {
    total_requests: requests,
    successful_requests: succeeded,
    failed_requests: failed,
    refused_requests: refused,
  };
}

function tokens({ promptTokens, completionTokens }: Sums) {
  return {
    total_prompt_tokens: promptTokens,
    total_completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

/** Over the whole time of the requests that were counted with completion tokens. */
function tokensPerSecond({ completionTokens, generatingMs }: Sums): number {
  return generatingMs === 0 ? 0 : hundredths(completionTokens / (generatingMs / 1000));
}

function hundredths(value: number): number {
  return Math.round(value * 100) / 100;
}
