// GET /admin/metrics/history and /admin/metrics/series: the parameters, and the answers. Samples are written as JSON text in
// pages, so that a long answer does not stop other requests.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { StorageError } from "../lib/resilient-database.ts";
import { readSeries } from "../metrics/history/series.ts";
import { DAY_MS, type HistoryStore, type RangeQuery, type StoredSample } from "../metrics/history/store.ts";
import { badParameter, readNumber, readTime } from "./query.ts";

const DEFAULT_LIMIT = 10_000;
const MAX_LIMIT = 100_000;
const MAX_METRIC_LENGTH = 256;
const PAGE_ROWS = 2_000;

/**
 * The body of GET /admin/metrics/history, as JSON. Throws 400 for parameters that make no sense, 404 while there is no store,
 * and 500 when the storage does not answer.
 */
export function queryHistory(
  store: HistoryStore | undefined,
  parameters: URLSearchParams,
  nowMs: number,
): Promise<string> {
  return fromStore(store, (open) => answer(open, readQuery(parameters, Math.floor(nowMs))));
}

const DEFAULT_STEPS = 300;
const MAX_BY = 4;
const MAX_QUANTILES = 4;
const DEFAULT_LINES = 20;
const MAX_LINES = 100;
/** Snapshots that may fail one after the other before their time counts as unknown. */
const MOST_MISSED = 3;

/** Answers GET /admin/metrics/series; throws as queryHistory() does. */
export function querySeries(
  store: HistoryStore | undefined,
  parameters: URLSearchParams,
  nowMs: number,
  snapshotSeconds: number,
) {
  return fromStore(store, async (open) => {
    const range = readRange(parameters, Math.floor(nowMs));
    const asked = readNumber(parameters, "step", 1) ?? 0;
    const intervalMs = snapshotSeconds * 1_000;
    const spreadMs = Math.ceil((range.toMs - range.fromMs) / DEFAULT_STEPS);
    const by = readNames(parameters, "by", MAX_BY);
    const quantiles = readNames(parameters, "quantiles", MAX_QUANTILES).map(readQuantile);
    const series = await readSeries(open, {
      ...range,
      stepMs: Math.max(intervalMs, asked === 0 ? spreadMs : asked * 1_000),
      by,
      quantiles: quantiles.length > 0 ? quantiles : [0.5, 0.95],
      maxGapMs: MOST_MISSED * intervalMs,
      most: Math.min(readNumber(parameters, "limit", 1) ?? DEFAULT_LINES, MAX_LINES),
    });
    return {
      metric: range.metric,
      from_ms: range.fromMs,
      to_ms: range.toMs,
      step_ms: series?.stepMs ?? intervalMs,
      kind: series?.kind ?? null,
      series: series?.lines ?? [],
    };
  });
}

function readNames(parameters: URLSearchParams, name: string, most: number): string[] {
  const names = [...new Set((parameters.get(name) ?? "").split(",").filter((part) => part !== ""))];
  if (names.length > most) throw badParameter(name, `at most ${most} with commas between`);
  return names;
}

function readQuantile(text: string): number {
  const quantile = /^[01]?\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (quantile >= 0 && quantile <= 1) return quantile;
  throw badParameter("quantiles", "numbers from 0 to 1 with commas between");
}

async function fromStore<Answer>(
  store: HistoryStore | undefined,
  read: (store: HistoryStore) => Promise<Answer>,
): Promise<Answer> {
  if (store === undefined) {
    throw new GatewayError(
      ERRORS.routeNotFound,
      "The metrics history is switched off. Set metrics.persistence.enabled to true and restart to have one.",
    );
  }
  try {
    return await read(store);
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    throw new GatewayError(ERRORS.internal, `${error.message} It is tried again by itself.`, { cause: error });
  }
}

function readQuery(parameters: URLSearchParams, nowMs: number): RangeQuery {
  return { ...readRange(parameters, nowMs), limit: readLimit(parameters.get("limit") || String(DEFAULT_LIMIT)) };
}

/** A parameter without a value counts as left out. */
function readRange(parameters: URLSearchParams, nowMs: number): Pick<RangeQuery, "metric" | "fromMs" | "toMs"> {
  const metric = parameters.get("metric") ?? "";
  if (metric === "") throw refusal("metric", "The query parameter 'metric' is required: the name of a metric family.");
  if (metric.length > MAX_METRIC_LENGTH) {
    throw refusal("metric", `The name of the metric must not be longer than ${MAX_METRIC_LENGTH} characters.`);
  }
  const timeOf = (name: string) => (parameters.get(name) === "" ? undefined : readTime(parameters, name));
  const fromMs = timeOf("from") ?? nowMs - DAY_MS;
  const toMs = timeOf("to") ?? nowMs;
  if (fromMs >= toMs) throw refusal("from", "The time range is empty: 'from' must be before 'to'.");
  return { metric, fromMs, toMs };
}

/** Beyond the ceiling one gets what the ceiling allows, as the answer says. */
function readLimit(text: string): number {
  if (/^\d{1,15}$/.test(text) && Number(text) > 0) return Math.min(Number(text), MAX_LIMIT);
  throw badParameter("limit", `a whole number from 1 to ${MAX_LIMIT}`);
}

function refusal(param: string, message: string): GatewayError {
  return new GatewayError(ERRORS.invalidRequest, message, { param });
}

async function answer(store: HistoryStore, query: RangeQuery): Promise<string> {
  const pages: string[] = [];
  let rowCount = 0;
  let after: RangeQuery["after"];
  while (rowCount < query.limit) {
    const limit = Math.min(PAGE_ROWS, query.limit - rowCount);
    const rows = store.read({ ...query, limit, after });
    if (rows.length > 0) pages.push(rows.map(sampleText).join(","));
    rowCount += rows.length;
    if (rows.length < limit) break;
    after = rows.at(-1);
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  const head = JSON.stringify({
    metric: query.metric,
    from_ms: query.fromMs,
    to_ms: query.toMs,
    row_count: rowCount,
    limit: query.limit,
  });
  return `${head.slice(0, -1)},"samples":[${pages.join(",")}]}`;
}

/** The labels are kept as the JSON that they are answered as. */
function sampleText({ ts, labels, value, kind }: StoredSample): string {
  return `{"ts_ms":${ts},"labels":${labels},"value":${value},"kind":${JSON.stringify(kind)}}`;
}
