// Any thrown value -> an answer in the standard error shape. The only place that does this.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { JsonObject } from "../lib/json.ts";
import type { ClientError } from "../protocols/protocol.ts";
import { encodeErrorBody } from "../protocols/standard-error.ts";

/** The error for the client: a GatewayError as it is, anything else as an unexpected error without its text. */
export function toGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  const message = "An unexpected error happened inside the gateway; its log has the details.";
  return new GatewayError(ERRORS.internal, message, { cause: thrown });
}

export function errorBody(error: GatewayError, requestId: string, format: ErrorFormat = encodeErrorBody): string {
  return JSON.stringify(format(clientError(error, requestId)));
}

/** The body in another format than the standard one. */
export type ErrorFormat = (error: ClientError) => JsonObject;

export function clientError(error: GatewayError, requestId: string): ClientError {
  const { status, message, type, code, param, details } = error;
  return {
    status,
    message,
    type,
    code,
    ...(param === undefined ? {} : { param }),
    ...(details === undefined ? {} : { details }),
    isOwn: true,
    requestId,
  };
}

export function errorResponse(
  error: GatewayError,
  requestId: string,
  headers: Record<string, string>,
  format?: ErrorFormat,
): Response {
  return new Response(errorBody(error, requestId, format), {
    status: error.status,
    headers: { ...headers, "Content-Type": "application/json", ...error.headers },
  });
}
