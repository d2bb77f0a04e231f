// How requests are searched for (GET /admin/requests, /admin/requests/groups, /admin/errors/groups) and looked up
// (GET /admin/requests/{id}): what the query parameters mean, and what is answered.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../lib/clock.ts";
import { TIME_FORMS } from "../lib/parse-time.ts";
import { oneOfTexts, text } from "../openapi/json-schema.ts";
import { type Parameter, queryParameter } from "../openapi/operation.ts";
import type { ColumnName, Value } from "../request-log/columns.ts";
import { type Condition, type Group, type Mark, type RequestSearch, SORTS, type Sort } from "../request-log/search.ts";
import type { Call } from "../server/endpoint.ts";
import type { StatsCollector } from "../stats/collector.ts";
import type { KeptError } from "../stats/error-recorder.ts";
import type { Stories } from "../stats/stories.ts";
import { badParameter, groupsPattern, readNumber, readTimes, timeText, WINDOW_NAMES } from "./query.ts";
import { GROUP_NAMES, GROUPS, type GroupName, RUNNING, SHOWN_OUTCOMES } from "./request-schemas.ts";
import { ownRow, requestRow, storyView } from "./request-view.ts";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 1_000;
/** Requests with the same id of a client that an explanation names. */
const MAX_OTHERS = 20;
const RETRY_SECONDS = 5;

/** How many requests were passed, and where the page ended. */
const CURSOR_PATTERN = "^(\\d{1,12})\\.(\\d{1,15})\\.(\\d{1,16})\\.(.*)$";
const CURSOR = new RegExp(CURSOR_PATTERN, "s");

/** A status, or a class of them. */
const STATUS_PATTERN = "^([1-5])(\\d\\d|[xX][xX])$";
const STATUS = new RegExp(STATUS_PATTERN);

/** A filter with a text: the columns of which one must equal it. */
const EQUAL = {
  model: { columns: ["model", "answeredBy"], description: "Asked for, or answering." },
  route: { columns: ["route"], description: "The route that was asked for." },
  arm: { columns: ["arm"], description: "The target of a route that answered." },
  backend: { columns: ["backend", "backends"], description: "Of any attempt." },
  key: { columns: ["keyId"], description: "Id of the caller's key." },
  user: { columns: ["userId"], description: "Id of the user." },
  organization: { columns: ["organizationId"], description: "Id of the organization." },
  client: { columns: ["clientAddress"], description: "Address of the client." },
  code: { columns: ["code"], description: "Of the error that the client was answered with." },
} as const satisfies Record<string, { columns: readonly ColumnName[]; description: string }>;

const DEFAULT_GROUPS = "status,code,key,model";

const requestFilters: readonly Parameter[] = [
  ...Object.entries(EQUAL).map(([name, { description }]) => queryParameter(name, description)),
  queryParameter("status", "Such as 502, or 5xx.", { ...text, pattern: STATUS_PATTERN }),
  queryParameter("outcome", "How it ended.", oneOfTexts(...SHOWN_OUTCOMES)),
  queryParameter("min_duration_ms", "At least so long.", { type: "integer", minimum: 0 }),
  queryParameter("window", "That came within it.", oneOfTexts(...WINDOW_NAMES)),
  queryParameter("since", `In place of a window: ${TIME_FORMS}; inclusive.`, timeText),
  queryParameter("until", "The same, exclusive.", timeText),
  queryParameter("id", "A part of either id."),
];

export const listParameters: readonly Parameter[] = [
  ...requestFilters,
  queryParameter("sort", "time: the newest first; duration: the longest first.", {
    ...oneOfTexts(...SORTS),
    default: "time",
  }),
  queryParameter("limit", "Most requests, up to 1,000.", { type: "integer", minimum: 1, default: DEFAULT_LIMIT }),
  queryParameter("cursor", "next_cursor of the page before.", { ...text, pattern: CURSOR_PATTERN }),
];

export const groupParameters: readonly Parameter[] = [
  ...requestFilters,
  queryParameter("by", `Any of ${GROUP_NAMES.join(", ")}, with commas between.`, {
    ...text,
    pattern: groupsPattern(GROUP_NAMES, GROUP_NAMES.length),
    default: DEFAULT_GROUPS,
  }),
  queryParameter("limit", "Most groups, up to 1,000.", { type: "integer", minimum: 1, default: DEFAULT_LIMIT }),
];

interface SearchCaller {
  /** Aborts when the client has left. */
  signal: AbortSignal;
  nowMs: number;
}

export function callerOf({ request }: Pick<Call, "request">, clock: Pick<Clock, "wallTime">): SearchCaller {
  return { signal: request.signal, nowMs: clock.wallTime() };
}

/** The answer of GET /admin/requests; throws 400 for a parameter that makes no sense. */
export async function listRequests(
  search: RequestSearch,
  stories: Stories,
  query: URLSearchParams,
  caller: SearchCaller,
) {
  const sort = readSort(query);
  const page = await waiting(
    search.page({
      ...readFilters(query, caller),
      sort,
      limit: readLimit(query),
      behind: readCursor(query),
    }),
  );
  return {
    requests: page.stories.map((story) => requestRow(stories, story)),
    total: page.total,
    searched_since: toTime(page.searchedSinceMs),
    next_cursor: page.next === undefined ? null : cursorOf(page.next),
  };
}

const MOST_OWN = 100;
const OWN_FILTERS = ["model", "outcome", "window", "since", "until"];

/** The answer of GET /v1/me/requests: those of one key alone. */
export async function ownRequests(
  search: RequestSearch,
  stories: Stories,
  collector: Pick<StatsCollector, "costOf" | "settings">,
  keyId: string,
  query: URLSearchParams,
  caller: SearchCaller,
) {
  const asked = new URLSearchParams([...query].filter(([name]) => OWN_FILTERS.includes(name)));
  const { conditions, ...filters } = readFilters(asked, caller);
  const isOwn: Condition = { columns: ["keyId"], test: (value) => value === keyId };
  const limit = Math.min(readLimit(query), MOST_OWN);
  const page = await waiting(
    search.page({ ...filters, conditions: [isOwn, ...conditions], sort: "time", limit, behind: readCursor(query) }),
  );
  return {
    currency: collector.settings.currency,
    requests: page.stories.map((story) => ownRow(stories, story, collector.costOf(story))),
    next_cursor: page.next === undefined ? null : cursorOf(page.next),
  };
}

/** As the list, with similar requests put together. */
export async function groupRequests(
  search: RequestSearch,
  query: URLSearchParams,
  caller: SearchCaller,
  further: readonly Condition[] = [],
) {
  const by = readGroups(query);
  const limit = readLimit(query);
  const { conditions, ...filters } = readFilters(query, caller);
  const columns = by.map((name) => GROUPS[name].column);
  const found = await waiting(search.groups({ ...filters, conditions: [...conditions, ...further] }, columns, limit));
  return {
    by,
    groups: found.groups.map((group) => groupRow(group, by)),
    omitted: found.omitted,
    total: found.total,
    searched_since: toTime(found.searchedSinceMs),
  };
}

function groupRow({ values, count, firstMs, lastMs, exampleId }: Group, by: readonly GroupName[]) {
  return {
    ...Object.fromEntries(by.map((name, index) => [GROUPS[name].member, values[index] ?? null])),
    count,
    first_at: toTime(firstMs),
    last_at: toTime(lastMs),
    example_id: exampleId,
  };
}

/**
 * The answer of GET /admin/requests/{id}; throws 404.
 * @param errorOf - what a client was answered with, by the gateway's own id of its request
 */
export async function explainRequest(
  search: RequestSearch,
  stories: Stories,
  id: string,
  errorOf: (id: string) => KeptError | undefined = () => undefined,
) {
  const story = await waiting(search.find(id));
  if (story === undefined) {
    throw new GatewayError(
      ERRORS.routeNotFound,
      "This request is not known, or no longer: admin.requests says how long they are kept. Its id stands in the headers X-Signalbox-Request-ID and X-Request-ID of the answer.",
    );
  }
  const others = await waiting(search.others(story, MAX_OTHERS));
  return storyView(stories, story, errorOf(story.id), others);
}

/** Throws 503 for a search that has too many before it. */
async function waiting<Result>(searching: Promise<Result> | undefined): Promise<Result> {
  if (searching !== undefined) return await searching;
  throw new GatewayError(ERRORS.storageUnavailable, "Too many searches of the log of requests are under way.", {
    headers: { "Retry-After": String(RETRY_SECONDS) },
  });
}

function readFilters(query: URLSearchParams, { signal, nowMs }: SearchCaller) {
  const conditions: Condition[] = [];
  for (const [name, { columns }] of Object.entries(EQUAL)) {
    const wanted = query.get(name);
    if (wanted !== null) conditions.push({ columns, test: (value) => isOrHas(value, wanted) });
  }
  const status = query.get("status");
  if (status !== null) conditions.push({ columns: ["status"], test: statusTest(status) });
  const outcome = query.get("outcome");
  if (outcome !== null) {
    if (!(SHOWN_OUTCOMES as readonly string[]).includes(outcome))
      throw badParameter("outcome", `one of ${SHOWN_OUTCOMES.join(", ")}`);
    conditions.push({ columns: ["outcome"], test: (value) => (value ?? RUNNING) === outcome });
  }
  const part = query.get("id");
  if (part !== null) {
    conditions.push({ columns: ["id", "requestId"], test: (value) => (value as string).includes(part) });
  }
  const minDurationMs = readNumber(query, "min_duration_ms", 0);
  if (minDurationMs !== undefined) {
    conditions.push({ columns: ["durationUs"], test: (value) => (value as number) >= minDurationMs * 1000 });
  }
  return {
    conditions,
    ...readTimes(query, nowMs),
    isWanted: () => !signal.aborted,
  };
}

function isOrHas(value: Value, wanted: string): boolean {
  return value === wanted || (Array.isArray(value) && value.includes(wanted));
}

function statusTest(text: string): Condition["test"] {
  const pattern = STATUS.exec(text);
  if (pattern === null) throw badParameter("status", "a status such as 502, or a class of them such as 5xx");
  const isClass = Number.isNaN(Number(text));
  return (status) => (isClass ? Math.floor(Number(status) / 100) === Number(pattern[1]) : status === Number(text));
}

function readLimit(query: URLSearchParams): number {
  return Math.min(readNumber(query, "limit", 1) ?? DEFAULT_LIMIT, MAX_LIMIT);
}

function readSort(query: URLSearchParams): Sort {
  const sort = query.get("sort") ?? "time";
  if ((SORTS as readonly string[]).includes(sort)) return sort as Sort;
  throw badParameter("sort", `one of ${SORTS.join(", ")}`);
}

function readGroups(query: URLSearchParams): GroupName[] {
  const names = (query.get("by") ?? DEFAULT_GROUPS).split(",");
  const isKnown = names.every((name) => Object.hasOwn(GROUPS, name)) && new Set(names).size === names.length;
  if (isKnown) return names as GroupName[];
  throw badParameter("by", `one or more of ${GROUP_NAMES.join(", ")}, each once, with commas between`);
}

function cursorOf({ passed, durationUs, cameUs, id }: Mark): string {
  return [passed, durationUs, cameUs, id].join(".");
}

function readCursor(query: URLSearchParams): Mark | undefined {
  const cursor = query.get("cursor");
  if (cursor === null) return undefined;
  const [, passed, durationUs, cameUs, id] = CURSOR.exec(cursor) ?? [];
  if (id === undefined) throw badParameter("cursor", "next_cursor of the page before");
  return { passed: Number(passed), durationUs: Number(durationUs), cameUs: Number(cameUs), id };
}

function toTime(timeMs: number): string;
function toTime(timeMs: number | undefined): string | null;
function toTime(timeMs: number | undefined): string | null {
  return timeMs === undefined ? null : new Date(timeMs).toISOString();
}
