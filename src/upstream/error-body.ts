// A backend's error body, in any of the shapes that backends use -> the standard error body.
// Shapes: OpenAI's, and those of older vLLM, Ollama, LM Studio and FastAPI.

import { isObject, type JsonObject, parseJson } from "../lib/json.ts";
import type { OwnErrors } from "../protocols/protocol.ts";

const decoder = new TextDecoder();

interface StandardError {
  message: string;
  type?: unknown;
  code?: unknown;
  param?: unknown;
}

/**
 * The body to forward for a backend error: the backend's own bytes when they already have the standard shape, else the
 * standard shape made from what can be read.
 */
export function forwardableErrorBody(status: number, body: Uint8Array): Uint8Array | string {
  const parsed = objectIn(body);
  if (parsed !== undefined && isStandard(parsed.error)) return body;
  const { code, type, message, param } = standardError(status, body);
  return JSON.stringify({ error: { code, type, message, ...(param === undefined ? {} : { param }) } });
}

/** The body of an error in the gateway's own words: of the backend's, type, code and param stay. */
export function rewordedErrorBody(
  status: number,
  body: Uint8Array,
  words: { message: string; type: string },
): Uint8Array {
  const parsed = objectIn(body);
  const own = parsed === undefined ? undefined : readError(parsed)?.type;
  const { message } = words;
  const type = typeof own === "string" ? own : words.type;
  const { code, param } = standardError(status, body);
  const error = { code, type, message, ...(param === undefined ? {} : { param }) };
  return new TextEncoder().encode(JSON.stringify({ error }));
}

/** The body of an error that is a mistake of the client, whatever the backend has called it: its words stay. */
export function clientsErrorBody(message: string, code: string): Uint8Array {
  const error = { code, type: "invalid_request_error", message, param: null };
  return new TextEncoder().encode(JSON.stringify({ error }));
}

/** Whether a body has an error with message and type, or what says its kind in the format. */
export function hasStandardError(body: Uint8Array, { frameType, kind }: Partial<OwnErrors> = {}): boolean {
  const parsed = objectIn(body);
  return isStandard(parsed?.error, kind) && (frameType === undefined || parsed?.type === frameType);
}

/** What a backend says in an error; undefined where nothing of it can be read. */
export function errorMessage(body: Uint8Array): string | undefined {
  const parsed = objectIn(body);
  return parsed && readError(parsed)?.message;
}

/** What can be read of a backend's error body, and what the standard says where it says nothing. */
export function standardError(
  status: number,
  body: Uint8Array,
): { message: string; type: string; code: string | number; param: string | null | undefined } {
  const parsed = objectIn(body);
  const error = parsed === undefined ? undefined : readError(parsed);
  const isClientError = status < 500;
  return {
    message: error?.message ?? `${isClientError ? "Client" : "Backend"} error: HTTP ${status}`,
    type: typeof error?.type === "string" ? error.type : isClientError ? "invalid_request_error" : "backend_error",
    code: typeof error?.code === "string" || typeof error?.code === "number" ? error.code : status,
    param: typeof error?.param === "string" || error?.param === null ? error.param : undefined,
  };
}

/** Undefined for HTML and plain text, which are common here: the status says enough. */
function objectIn(body: Uint8Array): JsonObject | undefined {
  const parsed = parseJson(decoder.decode(body));
  const value: unknown = Array.isArray(parsed) ? parsed[0] : parsed; // Gemini may wrap an error in an array
  return isObject(value) ? value : undefined;
}

function isStandard(error: unknown, kind = "type"): boolean {
  if (kind === "text") return typeof error === "string";
  return isObject(error) && typeof error.message === "string" && typeof error[kind] === "string";
}

function readError(body: JsonObject): StandardError | undefined {
  const { error, detail, message } = body;
  if (isObject(error) && typeof error.message === "string") return error as unknown as StandardError;
  if (typeof error === "string") return { message: error };
  if (typeof message === "string") return { message, type: body.type, code: body.code, param: body.param };
  if (typeof detail === "string") return { message: detail };
  if (detail !== undefined) return { message: JSON.stringify(detail) };
  return undefined;
}
