// The refusals of a form that cannot be read, before and while it is.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { MultipartFault } from "../lib/multipart-fault.ts";
import { boundaryOf } from "../lib/multipart-head.ts";

/** The boundary of a request that brings a form; throws 400 for any other. */
export function formBoundary({ headers }: Request): string {
  const boundary = boundaryOf(headers.get("content-type"));
  if (boundary instanceof MultipartFault) throw formRefusal(boundary);
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity") {
    const reason = `Content-Encoding '${encoding.slice(0, 64)}' is not supported, send it uncompressed`;
    throw new GatewayError(ERRORS.invalidRequest, `The request body cannot be read: ${reason}.`);
  }
  return boundary;
}

/** The refusal of a fault; anything else is returned as it is. */
export function formRefusal(error: unknown): unknown {
  if (!(error instanceof MultipartFault)) return error;
  const { field, message } = error;
  return new GatewayError(ERRORS.invalidRequest, message, {
    cause: error,
    ...(field === undefined ? {} : { param: field.slice(0, 64) }),
  });
}
