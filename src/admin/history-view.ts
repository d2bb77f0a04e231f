// GET /admin/metrics/history: the parameters, and the answer as JSON text, written in pages so that a long answer does not
// stop other requests (specification, "Admin API: metrics history").

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { StorageError } from "../lib/resilient-database.ts";
import { DAY_MS, type HistoryStore, type RangeQuery, type StoredSample } from "../metrics/history/store.ts";
import { badParameter, readTime } from "./query.ts";

const DEFAULT_LIMIT = 10_000;
const MAX_LIMIT = 100_000;
const MAX_METRIC_LENGTH = 256;
const PAGE_ROWS = 2_000;

/**
 * The body of the answer, as JSON. Throws 400 for parameters that make no sense, 404 while there is no store, and 500
 * when the storage does not answer.
 */
export async function queryHistory(
  store: HistoryStore | undefined,
  parameters: URLSearchParams,
  nowMs: number,
): Promise<string> {
  if (store === undefined) {
    throw new GatewayError(
      ERRORS.routeNotFound,
      "The metrics history is switched off. Set metrics.persistence.enabled to true and restart to have one.",
    );
  }
  const query = readQuery(parameters, Math.floor(nowMs));
  try {
    return await answer(store, query);
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    throw new GatewayError(ERRORS.internal, `${error.message} It is tried again by itself.`, { cause: error });
  }
}

/** A parameter without a value counts as left out. */
function readQuery(parameters: URLSearchParams, nowMs: number): RangeQuery {
  const metric = parameters.get("metric") ?? "";
  if (metric === "") throw refusal("metric", "The query parameter 'metric' is required: the name of a metric family.");
  if (metric.length > MAX_METRIC_LENGTH) {
    throw refusal("metric", `The name of the metric must not be longer than ${MAX_METRIC_LENGTH} characters.`);
  }
  const timeOf = (name: string) => (parameters.get(name) === "" ? undefined : readTime(parameters, name));
  const fromMs = timeOf("from") ?? nowMs - DAY_MS;
  const toMs = timeOf("to") ?? nowMs;
  if (fromMs >= toMs) throw refusal("from", "The time range is empty: 'from' must be before 'to'.");
  return { metric, fromMs, toMs, limit: readLimit(parameters.get("limit") || String(DEFAULT_LIMIT)) };
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
