// Errors of Google's APIs: {error: {code, message, status, details[]}}, alone or in a list.

import type { Failure } from "../../generation/result.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { nonEmptyText, objectsOf, textOf } from "../reading.ts";

interface StatusRule {
  http: number;
  type: string;
  code?: string;
}

const INVALID: StatusRule = { http: 400, type: "invalid_request_error" };
const CONFLICT: StatusRule = { http: 409, type: "conflict_error" };
const SERVER: StatusRule = { http: 500, type: "server_error" };
const WRONG_KEY: StatusRule = { http: 401, type: "authentication_error", code: "invalid_api_key" };

const STATUSES: ReadonlyMap<string, StatusRule> = new Map([
  ["INVALID_ARGUMENT", INVALID],
  ["FAILED_PRECONDITION", INVALID],
  ["OUT_OF_RANGE", INVALID],
  ["UNAUTHENTICATED", WRONG_KEY],
  ["PERMISSION_DENIED", { http: 403, type: "permission_error" }],
  ["NOT_FOUND", { http: 404, type: "not_found_error" }],
  ["ABORTED", CONFLICT],
  ["ALREADY_EXISTS", CONFLICT],
  ["RESOURCE_EXHAUSTED", { http: 429, type: "rate_limit_exceeded", code: "rate_limit_exceeded" }],
  ["CANCELLED", { http: 499, type: "server_error" }],
  ["INTERNAL", SERVER],
  ["UNKNOWN", SERVER],
  ["DATA_LOSS", SERVER],
  ["UNIMPLEMENTED", { http: 501, type: "server_error" }],
  ["UNAVAILABLE", { http: 503, type: "overloaded_error" }],
  ["DEADLINE_EXCEEDED", { http: 504, type: "timeout_error" }],
]);

/** Reasons in details that say more than the status, which is INVALID_ARGUMENT for a wrong key. */
const KEY_REASONS: ReadonlySet<string> = new Set(["API_KEY_INVALID", "API_KEY_EXPIRED"]);

const CONTEXT_EXCEEDED = /input token count.{0,80}exceeds/i;

const SECONDS = /^(\d+(?:\.\d+)?)s$/;

/** @param status - the HTTP status; one below 400 stands for an error inside of a 200 or a stream */
export function decodeError(status: number, body: unknown): Failure {
  const error = findError(body);
  const name = textOf(error.status);
  const details = objectsOf(error.details);
  const rule = ruleOf(name, details);
  const message = nonEmptyText(error.message) ?? `The backend reported an error (HTTP ${status}) without saying which.`;
  return {
    message,
    status: httpStatus(status, error, rule),
    ...compact({
      type: rule?.type,
      code: CONTEXT_EXCEEDED.test(message) ? "context_length_exceeded" : (rule?.code ?? nonEmptyText(name)),
      param: fieldAtFault(details),
      retryAfterMs: retryDelay(details),
    }),
  };
}

/** Whether a body or a chunk holds an error instead of an answer. */
export function hasError({ error }: JsonObject): boolean {
  return isObject(error) || nonEmptyText(error) !== undefined;
}

function findError(body: unknown): JsonObject {
  const value: unknown = Array.isArray(body) ? body.find((entry) => isObject(entry) && hasError(entry)) : body;
  if (!isObject(value)) return nonEmptyText(value) === undefined ? {} : { message: value };
  if (isObject(value.error)) return value.error;
  return nonEmptyText(value.error) === undefined ? value : { message: value.error };
}

function ruleOf(name: string, details: readonly JsonObject[]): StatusRule | undefined {
  if (details.some(({ reason }) => KEY_REASONS.has(textOf(reason)))) return WRONG_KEY;
  return STATUSES.get(name);
}

function httpStatus(status: number, { code }: JsonObject, rule: StatusRule | undefined): number {
  if (rule === WRONG_KEY) return WRONG_KEY.http;
  if (status >= 400) return status;
  if (rule !== undefined) return rule.http;
  return typeof code === "number" && Number.isInteger(code) && code >= 400 && code <= 599 ? code : 502;
}

/** google.rpc.BadRequest */
function fieldAtFault(details: readonly JsonObject[]): string | undefined {
  const violations = details.flatMap(({ fieldViolations }) => objectsOf(fieldViolations));
  return violations.map(({ field }) => nonEmptyText(field)).find((name) => name !== undefined);
}

/** google.rpc.RetryInfo, a duration such as "12s" or "0.5s". */
function retryDelay(details: readonly JsonObject[]): number | undefined {
  for (const detail of details) {
    const seconds = SECONDS.exec(textOf(detail.retryDelay))?.[1];
    if (seconds !== undefined) return Math.ceil(Number(seconds) * 1000);
  }
  return undefined;
}
