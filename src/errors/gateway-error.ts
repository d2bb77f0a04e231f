// A refusal that the client sees: thrown anywhere, turned into a response in one place (server/error-response.ts).

import { ERRORS, type ErrorDefinition } from "./catalog.ts";

interface GatewayErrorOptions {
  /** The request field at fault, in the client's spelling, e.g. "messages[0].role". */
  param?: string;
  details?: Record<string, unknown>;
  headers?: Record<string, string>;
  /** The request is as it should be, and another time it will be answered, although the status is not 5xx. */
  isOutage?: boolean;
  cause?: unknown;
}

export class GatewayError extends Error {
  readonly status: number;
  readonly type: string;
  readonly code: string | number;
  readonly param: string | undefined;
  readonly details: Record<string, unknown> | undefined;
  readonly headers: Record<string, string> | undefined;
  readonly isOutage: boolean;

  constructor(definition: ErrorDefinition, message: string, options: GatewayErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.name = "GatewayError";
    this.status = definition.status;
    this.type = definition.type;
    this.code = definition.code;
    this.param = options.param;
    this.details = options.details;
    this.headers = options.headers;
    this.isOutage = options.isOutage === true;
  }
}

/** The end of a request whose client has left; it is not read. */
export function clientLeft(): GatewayError {
  return new GatewayError(ERRORS.requestTimeout, "The client closed the request.");
}

/** The words do not depend on whether another owner has such a file: that must not be revealed. */
export function unknownFile(param: string): GatewayError {
  const message = `${param}: there is no such file; upload it to /v1/files.`;
  return new GatewayError(ERRORS.fileNotFound, message, { param });
}
