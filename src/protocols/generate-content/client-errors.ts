// The errors of Google's APIs for clients: {error: {code, message, status, details[]}} (google.rpc.Status, with the details
// of google/rpc/error_details.proto).

import type { Failure } from "../../generation/result.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { ClientError } from "../protocol.ts";

const NAME_OF_STATUS: ReadonlyMap<number, string> = new Map([
  [401, "UNAUTHENTICATED"],
  [403, "PERMISSION_DENIED"],
  [404, "NOT_FOUND"],
  [405, "UNIMPLEMENTED"],
  [408, "DEADLINE_EXCEEDED"],
  [409, "ABORTED"],
  [429, "RESOURCE_EXHAUSTED"],
  [499, "CANCELLED"],
  [501, "UNIMPLEMENTED"],
  [502, "UNAVAILABLE"],
  [503, "UNAVAILABLE"],
  [504, "DEADLINE_EXCEEDED"],
  [529, "UNAVAILABLE"],
]);

/** Who says it, beside the reason of an error. */
const DOMAIN = "signalbox";

function nameOf(status: number): string {
  return NAME_OF_STATUS.get(status) ?? (status < 500 ? "INVALID_ARGUMENT" : "INTERNAL");
}

export function errorBody(error: ClientError): JsonObject {
  const { status, message, type, code, param, details, requestId } = error;
  const reason = String(code ?? type).toUpperCase();
  const metadata = { type, request_id: requestId, ...(details !== undefined && { details: JSON.stringify(details) }) };
  const list: JsonObject[] = [
    { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain: DOMAIN, metadata },
  ];
  if (param !== undefined) {
    const fieldViolations = [{ field: param, description: message }];
    list.push({ "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations });
  }
  return { error: { code: status, message, status: nameOf(status), details: list } };
}

export function errorEvent(error: ClientError): string {
  return eventText(errorBody(error));
}

/** The event for an error that a backend reported inside its stream. */
export function failureEvent({ status, message }: Failure): string {
  return eventText({ error: { code: status, message, status: nameOf(status) } });
}

export function eventText(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}
