// GET /admin/metrics/history and /admin/metrics/series: the parameters, and the answers. Samples are written as JSON text in
// pages, so that a long answer does not stop other requests.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { otherWork } from "../lib/other-work.ts";
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
/** Up to four, with commas between. */
export const LABELS_PATTERN = "^[A-Za-z_][A-Za-z0-9_]*(,[A-Za-z_][A-Za-z0-9_]*){0,3}$";
/** The same of numbers from 0 to 1. */
export const QUANTILES_PATTERN = "^(0(\\.[0-9]{1,6})?|1)(,(0(\\.[0-9]{1,6})?|1)){0,3}$";
const DEFAULT_QUANTILES = [0.5, 0.95];
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
    const by = readList(parameters, "by", LABELS_PATTERN, "names of labels") ?? [];
    const quantiles = readQuantiles(parameters) ?? DEFAULT_QUANTILES;
    const series = await readSeries(open, {
      ...range,
      stepMs: Math.max(intervalMs, asked === 0 ? spreadMs : asked * 1_000),
      by,
      quantiles,
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

function readQuantiles(parameters: URLSearchParams): number[] | undefined {
  return readList(parameters, "quantiles", QUANTILES_PATTERN, "numbers from 0 to 1")?.map(Number);
}

function readList(parameters: URLSearchParams, name: string, pattern: string, kind: string): string[] | undefined {
  const text = parameters.get(name);
  if (text === null) return undefined;
  if (!new RegExp(pattern).test(text)) throw badParameter(name, `up to four ${kind} with commas between`);
  return [...new Set(text.split(","))];
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
    await otherWork();
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
