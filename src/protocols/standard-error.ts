// The standard error shape, which clients of chat and text completions read, too.

import type { Failure } from "../generation/result.ts";
import { compact, type JsonObject } from "../lib/json.ts";
import type { ClientError } from "./protocol.ts";

export function encodeErrorBody(error: ClientError): JsonObject {
  const { message, type, code = error.status, param, details, requestId } = error;
  return {
    error: {
      message,
      type,
      code,
      ...compact({ param, details }),
      request_id: requestId,
    },
  };
}

export function encodeErrorEvent(error: ClientError): string {
  return `data: ${JSON.stringify(encodeErrorBody(error))}\n\n`;
}

/** A backend's failure inside a stream: no finish and no end marker follow it. */
export function encodeFailure(failure: Failure): string {
  const { message, type = "backend_error", code = failure.status, param } = failure;
  return `data: ${JSON.stringify({ error: { message, type, code, ...compact({ param }) } })}\n\n`;
}
