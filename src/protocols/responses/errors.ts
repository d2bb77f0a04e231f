// Errors on both sides: as clients of this format read them, and as backends of this format tell them.

import type { Failure } from "../../generation/result.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import type { ClientError } from "../protocol.ts";
import { numberOf, optionalText } from "./wire.ts";

export function errorBody({ message, type, code, param, details, requestId }: ClientError): JsonObject {
  return {
    error: {
      message,
      type,
      code: code ?? null,
      param: param ?? null,
      ...(details !== undefined && { details }),
      request_id: requestId,
    },
  };
}

/** Flat, which both official SDKs and typed clients read. The number is unknown in a stream that passed untouched. */
export function errorEvent({ message, code, type, param }: ClientError): string {
  const fields = { code: String(code ?? type), message, param: param ?? null, sequence_number: 0 };
  return `event: error\ndata: ${JSON.stringify({ type: "error", ...fields })}\n\n`;
}

/** Codes that clients of this format know; for any other the kind of trouble is told by the status. */
export function failureCode({ code, status }: Failure): string {
  if (code !== undefined) return code;
  if (status === 429) return "rate_limit_exceeded";
  return status >= 400 && status < 500 ? "invalid_prompt" : "server_error";
}

/** HTTP statuses for codes that come inside a stream or a 200. */
const CODE_STATUS: Readonly<Record<string, number | undefined>> = {
  rate_limit_exceeded: 429,
  insufficient_quota: 429,
  invalid_prompt: 400,
  context_length_exceeded: 400,
  invalid_request_error: 400,
  server_is_overloaded: 503,
  slow_down: 503,
};

/** Status for errors that say nothing about theirs. */
const BACKEND_FAILED = 502;

/** Never throws. `status` 200 means that the error stood inside an answer. */
export function decodeError(status: number, body: unknown): Failure {
  const error = errorOf(body);
  const type = optionalText(error.type);
  const code = typeof error.code === "number" ? String(error.code) : optionalText(error.code);
  const isInside = status < 400;
  return {
    message:
      messageOf(error, body) ?? (isInside ? "The backend reported an error." : `The backend answered ${status}.`),
    status: isInside ? innerStatus(error, code ?? type) : status,
    ...(type !== undefined && !isEventName(type) && { type }),
    ...(code !== undefined && { code }),
  };
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
  if (typeof body === "string") return optionalText(body.trim().slice(0, 1000));
  return optionalText(error.message) ?? optionalText(error.detail) ?? optionalText(error.error);
}

function innerStatus(error: JsonObject, word: string | undefined): number {
  for (const value of [error.status, error.status_code, error.code]) {
    const status = numberOf(value);
    if (status !== undefined && Number.isInteger(status) && status >= 400 && status < 600) return status;
  }
  return (word === undefined ? undefined : CODE_STATUS[word]) ?? BACKEND_FAILED;
}
