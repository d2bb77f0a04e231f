// Errors on both sides: as clients of this format read them, and as backends of this format tell them.

import type { Failure } from "../../generation/result.ts";
import { compact, isObject, type JsonObject, parseObject } from "../../lib/json.ts";
import type { ClientError } from "../protocol.ts";
import { nonEmptyText, numberOf, wholeNumberOf } from "../reading.ts";
import { failureOf } from "../retry-hint.ts";
import { eventData } from "../sse.ts";

export function errorBody({ message, type, code, param, details, requestId }: ClientError): JsonObject {
  return {
    error: compact({ message, type, code: code ?? null, param: param ?? null, details, request_id: requestId }),
  };
}

/** Flat, which both official SDKs and typed clients read. */
export function errorEvent({ message, code, type, param }: ClientError, sent?: Uint8Array): string {
  const fields = { code: String(code ?? type), message, param: param ?? null, sequence_number: numberAfter(sent) };
  return `event: error\ndata: ${JSON.stringify({ type: "error", ...fields })}\n\n`;
}

function numberAfter(sent: Uint8Array | undefined): number {
  const numbers = eventData(new TextDecoder().decode(sent)).map((data) =>
    wholeNumberOf(parseObject(data)?.sequence_number),
  );
  const last = numbers.findLast((number) => number !== undefined);
  return last === undefined ? 0 : last + 1;
}

/** Codes that clients of this format know; for any other the status says what kind of trouble it is. */
export function failureCode({ code, status }: Failure): string {
  if (code !== undefined) return code;
  if (status === 429) return "rate_limit_exceeded";
  return status >= 400 && status < 500 ? "invalid_prompt" : "server_error";
}

interface CodeRule {
  status: number;
  type: string;
}

const CLIENTS_FAULT: CodeRule = { status: 400, type: "invalid_request_error" };

/** What the codes stand for that come inside a stream or a 200, where there is no status and often no type. */
const CODES: readonly (readonly [code: RegExp, CodeRule])[] = [
  [/^(?:rate_limit_exceeded|usage_limit_reached)$/, { status: 429, type: "rate_limit_exceeded" }],
  [/^(?:insufficient_quota|billing_hard_limit_reached)$/, { status: 429, type: "insufficient_quota" }],
  [/^(?:server_is_overloaded|slow_down)$/, { status: 503, type: "server_error" }],
  [/^vector_store_timeout$/, { status: 504, type: "server_error" }],
  [/^server_error$/, { status: 500, type: "server_error" }],
  // invalid_prompt, invalid_request_error, invalid_image, invalid_base64_image, ...
  [/^(?:invalid_|context_length_exceeded$|data_residency_mismatch$|cyber_policy)/, CLIENTS_FAULT],
  // bio_policy, misalignment_policy_violation, image_content_policy_violation, image_too_large, ...
  [/_policy(?:_|$)|^image_|_image(?:_|$)|_image_media_type$/, CLIENTS_FAULT],
];

function ruleOf(word: string | undefined): CodeRule | undefined {
  return word === undefined ? undefined : CODES.find(([code]) => code.test(word))?.[1];
}

/** Status for errors that say nothing about theirs. */
const BACKEND_FAILED = 502;

/** Never throws. `status` 200 means that the error stood inside an answer. */
export function decodeError(status: number, body: unknown): Failure {
  const error = errorOf(body);
  const type = nonEmptyText(error.type);
  const code = typeof error.code === "number" ? String(error.code) : nonEmptyText(error.code);
  const isInside = status < 400;
  const message =
    messageOf(error, body) ?? (isInside ? "The backend reported an error." : `The backend answered ${status}.`);
  const ownType = type === undefined || isEventName(type) ? undefined : type;
  const rule = isInside ? (ruleOf(code) ?? ruleOf(ownType)) : undefined;
  return failureOf({
    message,
    status: isInside ? (numericStatus(error) ?? rule?.status ?? BACKEND_FAILED) : status,
    type: ownType ?? rule?.type,
    code,
    param: nonEmptyText(error.param),
  });
}

/** The type of an event that tells of an error is not the type of the error. */
function isEventName(type: string): boolean {
  return type === "error" || type.startsWith("response.");
}

/** {error: {...}}, {response: {error: {...}}}, or the members themselves. */
function errorOf(body: unknown): JsonObject {
  if (!isObject(body)) return {};
  if (isObject(body.error)) return body.error;
  if (isObject(body.response)) return errorOf(body.response);
  return body;
}

function messageOf(error: JsonObject, body: unknown): string | undefined {
  if (typeof body === "string") return nonEmptyText(body.trim().slice(0, 1000));
  return nonEmptyText(error.message) ?? nonEmptyText(error.detail) ?? nonEmptyText(error.error);
}

function numericStatus(error: JsonObject): number | undefined {
  for (const value of [error.status, error.status_code, error.code]) {
    const status = numberOf(value);
    if (status !== undefined && Number.isInteger(status) && status >= 400 && status < 600) return status;
  }
  return undefined;
}
