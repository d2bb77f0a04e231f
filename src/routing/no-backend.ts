// The refusal of a request that no backend can take: why, and when it is worth another try.

import type { BackendBoard, BackendEntry } from "../backends/board.ts";
import type { Operation } from "../backends/operations.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { nearest } from "../lib/nearest.ts";
import type { Circuits } from "./circuits.ts";
import { hasOperation } from "./router.ts";

/** Why a backend gets no requests, and when that may change. */
export interface Absence {
  /** Shown to clients, so it names no address. */
  why: string;
  /** Milliseconds until it is looked at again; undefined while it is not looked at. */
  nextLookMs: number | undefined;
}

interface RefusedRequest {
  board: BackendBoard;
  model: string;
  operation: Operation;
  circuits: Pick<Circuits, "retryAfterMs">;
  absenceOf(backendName: string): Absence;
  /** The models that may be named to the client; undefined: all. */
  allowsModel?: ((model: string) => boolean) | undefined;
}

/** 404 or 503 (docs/api.md#models-without-an-available-backend). */
export function noBackendError(request: RefusedRequest): GatewayError {
  const { board, model, operation, allowsModel = () => true } = request;
  const enabled = board.entries.filter((entry) => entry.backend.enabled);
  if (enabled.length === 0) return new GatewayError(ERRORS.noBackends, "No backends available");
  if (!enabled.some((entry) => entry.available)) {
    const { reasons, headers } = awayOf(enabled, request);
    const message = `No backend is healthy at the moment (${reasons}).`;
    return new GatewayError(ERRORS.allBackendsUnhealthy, message, { headers });
  }
  const available = board.candidates(model);
  const offering = available.filter((entry) => hasOperation(entry, operation));
  if (offering.length > 0) return circuitOpenError(model, offering, request);
  if (available.length > 0) {
    return new GatewayError(
      ERRORS.unsupportedOperation,
      `The backends that serve the model '${model}' (${listNames(available)}) have no ${operation} endpoint.`,
      { param: "model" },
    );
  }
  const serving = board.serving(model);
  if (serving.length === 0) return unknownModelError(model, [...board.models()].filter(allowsModel));
  const { reasons, headers } = awayOf(serving, request);
  return new GatewayError(
    ERRORS.modelNotFound,
    `The model '${model}' is served only by backends that are not available at the moment (${reasons}).`,
    { param: "model", headers, isOutage: true },
  );
}

/** SDKs need not ask again for what does not exist. */
export function unknownModelError(model: string, known: Iterable<string>): GatewayError {
  const near = nearest(model, known);
  const hint = near === undefined ? "GET /v1/models lists the models." : `did you mean '${near}'?`;
  const message = `The model '${model}' is not served by any backend; ${hint}`;
  return new GatewayError(ERRORS.modelNotFound, message, { param: "model", headers: { "x-should-retry": "false" } });
}

function circuitOpenError(
  model: string,
  entries: readonly BackendEntry[],
  { circuits }: Pick<RefusedRequest, "circuits">,
): GatewayError {
  const waitMs = Math.min(...entries.map(({ backend }) => circuits.retryAfterMs(backend.name)));
  return new GatewayError(
    ERRORS.circuitOpen,
    `The backends that serve the model '${model}' (${listNames(entries)}) have failed repeatedly and are left alone for a moment.`,
    { headers: worthRetryingAfter(waitMs) },
  );
}

/** Why each of these is away, and the headers that tell an SDK whether to ask again, and when. */
function awayOf(
  entries: readonly BackendEntry[],
  { absenceOf }: Pick<RefusedRequest, "absenceOf">,
): { reasons: string; headers: Record<string, string> } {
  const absences = entries.map(({ backend }) => ({ name: backend.name, ...absenceOf(backend.name) }));
  const looks = absences.map(({ nextLookMs }) => nextLookMs).filter((lookMs) => lookMs !== undefined);
  const reasons = absences.map(({ name, why }) => `${name}: ${why}`);
  return {
    reasons: listed(reasons, "; "),
    headers: looks.length === 0 ? { "x-should-retry": "false" } : worthRetryingAfter(Math.min(...looks)),
  };
}

/** Without the header SDKs do not repeat what met 404. */
function worthRetryingAfter(waitMs: number): Record<string, string> {
  return { "x-should-retry": "true", "Retry-After": String(Math.max(1, Math.ceil(waitMs / 1000))) };
}

function listNames(entries: readonly BackendEntry[]): string {
  const names = entries.map(({ backend }) => backend.name);
  return listed(names, ", ");
}

const MAX_LISTED = 5;

function listed(texts: readonly string[], separator: string): string {
  const shown = texts.slice(0, MAX_LISTED).join(separator);
  return texts.length > MAX_LISTED ? `${shown} and ${texts.length - MAX_LISTED} more` : shown;
}
