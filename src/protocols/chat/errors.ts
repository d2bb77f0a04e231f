// Errors that backends of the chat format tell of, in any of their shapes.

import type { Failure } from "../../generation/result.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { nonEmptyText } from "../reading.ts";
import { failureOf } from "../retry-hint.ts";

/** Words in `type` or `code` that stand for a status where the HTTP status does not tell (200, or inside a stream). */
const STATUS_WORDS: readonly (readonly [word: string, status: number])[] = [
  ["context", 400],
  ["invalid_api_key", 401],
  ["authentication", 401],
  ["permission", 403],
  ["not_found", 404],
  ["rate_limit", 429],
  ["insufficient_quota", 429],
  ["too_large", 413],
  ["invalid", 400],
  ["unsupported", 400],
  ["BadRequest", 400],
  ["policy_violation", 400],
  ["content_filter", 400],
  ["moderation", 400],
  ["user_error", 400], // image_generation_user_error
  ["overloaded", 529],
  ["unavailable", 503],
  ["timeout", 504],
  ["server_error", 500],
];

/** @param status - the HTTP status; one below 400 stands for an error inside a 200 or a stream */
export function decodeError(status: number, body: unknown): Failure {
  const error = findError(body);
  const code = typeof error.code === "number" && !isErrorStatus(error.code) ? String(error.code) : error.code;
  return failureOf({
    message: messageOf(error) ?? `The backend reported an error (HTTP ${status}) without saying which.`,
    status: status >= 400 ? status : embeddedStatus(error),
    type: nonEmptyText(error.type),
    code: nonEmptyText(code),
    param: nonEmptyText(error.param),
  });
}

/** The error that an answer or a chunk holds; undefined when it holds none. */
export function embeddedError(body: JsonObject): Failure | undefined {
  const { error } = body;
  const isError = (error !== undefined && error !== null && error !== false && error !== "") || body.object === "error";
  return isError ? decodeError(200, body) : undefined;
}

/**
 * {error: {...}}, {error: "..."}, a bare error object (older vLLM), {detail: ...} (FastAPI), {errors: [...]} (Cloudflare), a
 * list of one, plain text.
 */
function findError(body: unknown): JsonObject {
  const value: unknown = Array.isArray(body) ? body[0] : body;
  if (typeof value === "string") return { message: value };
  if (!isObject(value)) return {};
  if (isObject(value.error)) return value.error;
  if (typeof value.error === "string") return { ...value, message: value.error };
  if (Array.isArray(value.errors) && isObject(value.errors[0])) return value.errors[0];
  return value;
}

function messageOf({ message, detail }: JsonObject): string | undefined {
  const text = nonEmptyText(message) ?? nonEmptyText(detail);
  if (text !== undefined) return text.trim() === "" ? undefined : text;
  return detail === undefined || detail === null ? undefined : JSON.stringify(detail);
}

function embeddedStatus({ code, type }: JsonObject): number {
  const number = Number(code);
  if (isErrorStatus(number)) return number;
  const words = `${typeof code === "string" ? code : ""} ${typeof type === "string" ? type : ""}`;
  return STATUS_WORDS.find(([word]) => words.includes(word))?.[1] ?? 502;
}

function isErrorStatus(value: number): boolean {
  return Number.isInteger(value) && value >= 400 && value <= 599;
}
