// The Statistics record of the admin API (specification, "Statistics record"), made of what the collector has counted.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { ModelSums, Percentiles, StatsCollector } from "./collector.ts";
import type { Sums } from "./windows.ts";

const HOUR_MS = 3_600_000;

export const WINDOW_MS: Readonly<Record<string, number>> = {
  "30m": HOUR_MS / 2,
  "1h": HOUR_MS,
  "24h": 24 * HOUR_MS,
  "7d": 7 * 24 * HOUR_MS,
};

export const WINDOW_NAMES: readonly string[] = Object.keys(WINDOW_MS);

/** What the query parameter `window` asks for. */
export interface StatsWindow {
  name: string;
  /** Undefined: all time. */
  ms: number | undefined;
}

const ALL_TIME: StatsWindow = { name: "all", ms: undefined };

/** Throws 400 for a window that does not exist. */
export function readWindow(query: URLSearchParams, windows = WINDOW_MS): StatsWindow {
  const name = query.get("window");
  if (name === null || name === "all") return ALL_TIME;
  const ms = Object.hasOwn(windows, name) ? windows[name] : undefined;
  if (ms !== undefined) return { name, ms };
  throw new GatewayError(
    ERRORS.invalidRequest,
    `The window must be one of ${Object.keys(windows).join(", ")}; leave it out for everything since the last reset.`,
    { param: "window" },
  );
}

interface Counts {
  total_requests: number;
  successful_requests: number;
  failed_requests: number;
}

interface Tokens {
  total_prompt_tokens: number;
  total_completion_tokens: number;
  total_tokens: number;
}

export interface OverallView extends Counts, Tokens {
  avg_latency_ms: number;
  p50_latency_ms: number;
  p95_latency_ms: number;
  p99_latency_ms: number;
  tokens_per_sec_avg: number;
}

export interface RowView extends Counts, Tokens {
  avg_latency_ms: number;
  avg_tokens_per_sec: number;
  last_used: string;
}

export type ModelRowView = { model_id: string } & RowView;
export type BackendRowView = { backend_name: string } & RowView & {
    p50_latency_ms: number;
    p95_latency_ms: number;
    p99_latency_ms: number;
    /** Null where it has not streamed. */
    p50_first_token_ms: number | null;
    p95_first_token_ms: number | null;
    p99_first_token_ms: number | null;
  };

interface Frame {
  uptime_seconds: number;
  window: string;
}

export interface StatsView extends Frame {
  overall: OverallView;
  models: ModelRowView[];
  backends: BackendRowView[];
}

export function statsView(collector: StatsCollector, window: StatsWindow): StatsView {
  return {
    ...frame(collector, window),
    overall: overallView(collector, window),
    models: modelRows(collector, window),
    backends: backendRows(collector, window),
  };
}

export function modelStatsView(
  collector: StatsCollector,
  window: StatsWindow,
): Omit<StatsView, "overall" | "backends"> {
  return { ...frame(collector, window), models: modelRows(collector, window) };
}

export function backendStatsView(
  collector: StatsCollector,
  window: StatsWindow,
): Omit<StatsView, "overall" | "models"> {
  return { ...frame(collector, window), backends: backendRows(collector, window) };
}

export function resetStats(collector: StatsCollector): { success: true; message: string } {
  collector.reset();
  return { success: true, message: "The statistics were cleared." };
}

/** Throws 404 while statistics are switched off. */
export function requireStats(collector: StatsCollector): StatsCollector {
  if (collector.settings.enabled) return collector;
  throw new GatewayError(
    ERRORS.routeNotFound,
    "Statistics are switched off. Set admin.stats.enabled to true to have them.",
  );
}

function frame(collector: StatsCollector, window: StatsWindow): Frame {
  return { uptime_seconds: collector.uptimeSeconds, window: window.name };
}

function overallView(collector: StatsCollector, { ms }: StatsWindow): OverallView {
  const sums = collector.overall(ms);
  return {
    ...counts(sums),
    avg_latency_ms: averageLatency(sums),
    ...latencies(collector.percentiles(ms)),
    ...tokens(sums),
    tokens_per_sec_avg: tokensPerSecond(sums),
  };
}

function modelRows(collector: StatsCollector, { ms }: StatsWindow): ModelRowView[] {
  return collector.models(ms).map((row) => ({ model_id: row.name, ...rowView(row) }));
}

function backendRows(collector: StatsCollector, { ms }: StatsWindow): BackendRowView[] {
  return collector.backends(ms).map(({ latency, firstToken, ...row }) => ({
    backend_name: row.name,
    ...rowView(row),
    ...latencies(latency),
    p50_first_token_ms: firstToken === undefined ? null : round(firstToken.p50, 2),
    p95_first_token_ms: firstToken === undefined ? null : round(firstToken.p95, 2),
    p99_first_token_ms: firstToken === undefined ? null : round(firstToken.p99, 2),
  }));
}

function latencies({ p50, p95, p99 }: Percentiles) {
  return { p50_latency_ms: round(p50, 2), p95_latency_ms: round(p95, 2), p99_latency_ms: round(p99, 2) };
}

function rowView(row: ModelSums): RowView {
  return {
    ...counts(row),
    ...tokens(row),
    avg_latency_ms: averageLatency(row),
    avg_tokens_per_sec: tokensPerSecond(row),
    last_used: new Date(row.lastUsedMs).toISOString(),
  };
}

function counts({ requests, failed, succeeded }: Sums): Counts {
  return { total_requests: requests, successful_requests: succeeded, failed_requests: failed };
}

function tokens({ promptTokens, completionTokens }: Sums): Tokens {
  return {
    total_prompt_tokens: promptTokens,
    total_completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

/** Of those that succeeded: a refusal is quick, and a timeout says nothing of the model. */
export function averageLatency({ latencyMs, succeeded }: Sums): number {
  return succeeded === 0 ? 0 : round(latencyMs / succeeded, 2);
}

/** Over the whole time of the requests that were counted with completion tokens. */
function tokensPerSecond({ completionTokens, generatingMs }: Sums): number {
  return generatingMs === 0 ? 0 : round(completionTokens / (generatingMs / 1000), 2);
}

function round(value: number, digits: number): number {
  const factor = 10 ** digits;
  return Math.round(value * factor) / factor;
}
