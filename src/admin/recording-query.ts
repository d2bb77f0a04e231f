// How recordings are looked for: the query parameters of /admin/recordings, which a replay and its command line name as well.

import { oneOfTexts, type Properties, text } from "../openapi/json-schema.ts";
import { type Parameter, queryParameter } from "../openapi/operation.ts";
import type { RecordingFilter } from "../recording/filter.ts";
import type { RecordingMark } from "../recording/store.ts";
import { WordHashes } from "../recording/words.ts";
import { badParameter, readNumber, readTimes, timeText, WINDOW_NAMES } from "./query.ts";
import { SHOWN_OUTCOMES } from "./request-schemas.ts";

const NANOS = 1e9;
const STATUS = /^([1-5])(\d\d|[xX][xX])$/;
const AMOUNT = "^\\d{1,9}(\\.\\d{1,9})?$";
const CURSOR_PATTERN = "^\\d{1,15}\\.\\d{1,15}$";

const EQUAL = {
  model: "Asked for, or answering.",
  route: "The route that was asked for.",
  arm: "The target of a route that answered.",
  backend: "That answered.",
  key: "Id of the caller's key.",
  user: "Id of the user.",
  organization: "Id of the organization.",
  operation: "Such as chat or messages.",
  dataset: "Name of an imported data set.",
} as const;

const FIELDS: Properties = {
  id: { ...text, description: "Id of one recording." },
  text: { ...text, description: "All of these words, in the request or the answer." },
  ...Object.fromEntries(Object.entries(EQUAL).map(([name, description]) => [name, { ...text, description }])),
  outcome: { ...oneOfTexts(...SHOWN_OUTCOMES), description: "How it ended." },
  status: { ...text, pattern: STATUS.source, description: "Such as 502, or 5xx." },
  min_duration_ms: { type: "integer", minimum: 0, description: "At least so long." },
  max_duration_ms: { type: "integer", minimum: 0, description: "At most so long." },
  min_cost: { ...text, pattern: AMOUNT, description: "In the unit of the currency." },
  max_cost: { ...text, pattern: AMOUNT, description: "The same, at most." },
  window: { ...oneOfTexts(...WINDOW_NAMES), description: "That came within it." },
  since: { ...timeText, description: "In place of a window: a time; inclusive." },
  until: { ...timeText, description: "The same, exclusive." },
};

/** Names of the members of a filter, in the order of the documentation. */
export const FILTER_NAMES: readonly string[] = Object.keys(FIELDS);

export const filterParameters: readonly Parameter[] = Object.entries(FIELDS).map(([name, { description, ...schema }]) =>
  queryParameter(name, description ?? "", schema),
);

export const pageParameters: readonly Parameter[] = [
  queryParameter("limit", "Most recordings of a page, up to 500.", { type: "integer", minimum: 1, default: 50 }),
  queryParameter("cursor", "next_cursor of the page before.", { ...text, pattern: CURSOR_PATTERN }),
];

/** Throws 400 for a value that makes no sense. */
export function readFilter(query: URLSearchParams, nowMs: number): RecordingFilter {
  const equal = Object.fromEntries(Object.keys(EQUAL).map((name) => [name, query.get(name) ?? undefined]));
  const id = query.get("id");
  const outcome = query.get("outcome") ?? undefined;
  if (outcome !== undefined && !(SHOWN_OUTCOMES as readonly string[]).includes(outcome)) {
    throw badParameter("outcome", `one of ${SHOWN_OUTCOMES.join(", ")}`);
  }
  return {
    ...equal,
    ...(id !== null && { ids: [id] }),
    ...readTimes(query, nowMs),
    outcome,
    text: readText(query),
    status: readStatus(query),
    minDurationMs: readNumber(query, "min_duration_ms", 0),
    maxDurationMs: readNumber(query, "max_duration_ms", 0),
    minCost: readAmount(query, "min_cost"),
    maxCost: readAmount(query, "max_cost"),
  };
}

function readText(query: URLSearchParams): string | undefined {
  const words = query.get("text") ?? undefined;
  if (words !== undefined && new WordHashes().of([words]).length === 0) throw badParameter("text", "at least one word");
  return words;
}

function readStatus(query: URLSearchParams): [number, number] | undefined {
  const status = query.get("status");
  if (status === null) return undefined;
  const [, first, rest = ""] = STATUS.exec(status) ?? [];
  if (first === undefined) throw badParameter("status", "a status such as 502, or a class of them such as 5xx");
  const from = Number(/\d\d/.test(rest) ? status : first) * (/\d\d/.test(rest) ? 1 : 100);
  return [from, /\d\d/.test(rest) ? from : from + 99];
}

function readAmount(query: URLSearchParams, name: string): number | undefined {
  const amount = query.get(name);
  if (amount === null) return undefined;
  if (new RegExp(AMOUNT).test(amount)) return Math.round(Number(amount) * NANOS);
  throw badParameter(name, "an amount such as 0.05");
}

const MOST_PER_PAGE = 500;

export function readPage(query: URLSearchParams): { limit: number; behind: RecordingMark | undefined } {
  const limit = Math.min(readNumber(query, "limit", 1) ?? 50, MOST_PER_PAGE);
  const cursor = query.get("cursor");
  if (cursor === null) return { limit, behind: undefined };
  if (!new RegExp(CURSOR_PATTERN).test(cursor)) throw badParameter("cursor", "next_cursor of the page before");
  const [atMs = 0, number = 0] = cursor.split(".").map(Number);
  return { limit, behind: { atMs, number } };
}

export function cursorOf({ atMs, number }: RecordingMark): string {
  return `${atMs}.${number}`;
}
