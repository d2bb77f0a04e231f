// POST /admin/debug/error: an error of a chosen type is recorded as if a request had met it, so that alarms and
// dashboards can be tried.

import { ERRORS, type ErrorDefinition } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { ErrorRecorder } from "../stats/error-recorder.ts";
import { RequestRecord } from "../stats/request-record.ts";
import { errorRow } from "./error-view.ts";

interface DebugErrorParts {
  recorder: ErrorRecorder;
  backendNames: readonly string[];
  newId(): string;
}

const NAMED_TYPES: Readonly<Record<string, { definition: ErrorDefinition; failure: string }>> = {
  timeout: { definition: ERRORS.backendTimeout, failure: "timeout_first_byte" },
  connection_error: { definition: ERRORS.backendConnection, failure: "connect" },
  circuit_open: { definition: ERRORS.circuitOpen, failure: "circuit_open" },
};

/** Throws 400 for a type that there is not, and 404 for a backend. */
export function recordDebugError(
  { recorder, backendNames, newId }: DebugErrorParts,
  { type, backend }: { type: string; backend: string },
) {
  const { definition, failure } = definitionOf(type);
  if (!backendNames.includes(backend)) {
    throw new GatewayError(ERRORS.routeNotFound, "There is no backend of this name; GET /admin/backends lists them.", {
      param: "backend",
    });
  }
  const id = newId();
  const request = new RequestRecord(id, id, 0, () => 0);
  request.isKept = true;
  request.backend = backend;
  request.attempt(backend, "").failure = failure;
  const words = `Test error of type ${type}, recorded through the admin API.`;
  request.error = { type: definition.type, code: definition.code, message: words };
  request.finish(definition.status, "failed", 0);
  const record = recorder.record(request);
  const message = `A test error of type ${type} was recorded for backend '${backend}'.`;
  return { success: true as const, message, error: errorRow(record) };
}

function definitionOf(type: string): { definition: ErrorDefinition; failure: string } {
  const named = Object.hasOwn(NAMED_TYPES, type) ? NAMED_TYPES[type] : undefined;
  if (named !== undefined) return named;
  const status = Number(/^status_([45]\d\d)$/.exec(type)?.[1] ?? Number.NaN);
  if (Number.isNaN(status)) throw unknownType();
  return { definition: { ...ERRORS.backendError, status, code: status }, failure: type };
}

function unknownType(): GatewayError {
  const known = [...Object.keys(NAMED_TYPES), "status_<400 to 599>"].join(", ");
  return new GatewayError(ERRORS.invalidRequest, `'type' must be one of ${known}.`, { param: "type" });
}
