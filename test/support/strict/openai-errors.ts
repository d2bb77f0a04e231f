// Errors in the words of api.openai.com, for both of its formats.

import type { JsonObject, ScriptedError } from "./script.ts";
import type { Refused } from "./shape.ts";

const TYPES: Record<number, string> = {
  400: "invalid_request_error",
  401: "invalid_request_error",
  403: "permission_error",
  404: "invalid_request_error",
  429: "rate_limit_exceeded",
};

export function openAiRefusal(refused: Refused): JsonObject {
  const { field, reason, status } = refused;
  const said = {
    unknown: { message: `Unknown parameter: '${field}'.`, code: "unknown_parameter" },
    missing: {
      message: `Missing required parameter: '${field}'. ${refused.message}`,
      code: "missing_required_parameter",
    },
    invalid: { message: `Invalid '${field}': ${refused.message}`, code: "invalid_value" },
  }[reason];
  const type = TYPES[status] ?? "server_error";
  return { error: { ...said, ...(refused.code !== undefined && { code: refused.code }), param: field || null, type } };
}

export function openAiFailure(error: ScriptedError): JsonObject {
  const type = error.type ?? TYPES[error.status] ?? "server_error";
  return { error: { message: error.message, type, param: null, code: type } };
}
