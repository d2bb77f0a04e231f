// Errors of the Messages format: a fixed set of types, each with its HTTP status.

import type { Failure } from "../../generation/result.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import type { ClientError } from "../protocol.ts";
import { nonEmptyText, objectOf, optionalText } from "../reading.ts";
import { eventText } from "./wire.ts";

const STATUS_OF_TYPE: ReadonlyMap<string, number> = new Map([
  ["invalid_request_error", 400],
  ["authentication_error", 401],
  ["billing_error", 402],
  ["permission_error", 403],
  ["not_found_error", 404],
  ["conflict_error", 409],
  ["request_too_large", 413],
  ["rate_limit_error", 429],
  ["api_error", 500],
  ["timeout_error", 504],
  ["overloaded_error", 529],
]);

const TYPE_OF_STATUS: ReadonlyMap<number, string> = new Map([
  [408, "timeout_error"],
  [503, "overloaded_error"],
  ...[...STATUS_OF_TYPE].map(([type, status]) => [status, type] as const),
]);

/** What a spent account is called; its status is 429 elsewhere, which would invite retries. */
const QUOTA_CODE = "insufficient_quota";

/** What OpenAI's format calls nearly every refusal; this one has words of its own for many of them. */
const ANY_REFUSAL = "invalid_request_error";

function errorType(status: number, type: string | undefined, code: unknown, isOwn = false): string {
  if (type === ANY_REFUSAL && status < 500 && code !== QUOTA_CODE) return TYPE_OF_STATUS.get(status) ?? type;
  if (type !== undefined && STATUS_OF_TYPE.has(type)) return type;
  // A budget of the gateway has room again at a time that it names; what a vendor's account lacks, its owner has to pay.
  if (code === QUOTA_CODE || type === QUOTA_CODE) return isOwn ? "rate_limit_error" : "billing_error";
  return TYPE_OF_STATUS.get(status) ?? (status < 500 ? ANY_REFUSAL : "api_error");
}

export function errorBody({ status, message, type, code, details, isOwn, requestId }: ClientError): JsonObject {
  const error = { type: errorType(status, type, code, isOwn), message, ...compact({ details }) };
  return { type: "error", error, request_id: requestId };
}

export function errorEvent(error: ClientError): string {
  return eventText("error", errorBody(error));
}

/** The event for an error that a backend reported inside its stream. */
export function failureEvent({ status, message, type, code }: Failure): string {
  return eventText("error", { type: "error", error: { type: errorType(status, type, code), message } });
}

/** Reads {type: "error", error: {type, message}} and what stands in for it: proxies answer with text or HTML. */
export function decodeError(status: number, body: unknown): Failure {
  const told = isObject(body) ? (body.error ?? body) : undefined;
  const error = objectOf(told);
  const type = optionalText(error.type);
  return {
    message: nonEmptyText(isObject(told) ? told.message : told) ?? `The backend answered with status ${status}.`,
    status: status >= 400 ? status : (STATUS_OF_TYPE.get(type ?? "") ?? 502),
    ...compact({ type, code: optionalText(objectOf(error.details).error_code) }),
  };
}
