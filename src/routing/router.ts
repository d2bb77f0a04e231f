// Model id -> backend: which backends may serve a request, and why none may.

import type { BackendBoard, BackendEntry } from "../backends/board.ts";
import { type Operation, servedBy } from "../backends/kinds.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Circuits } from "./circuits.ts";
import type { SelectionQuery, SelectionStrategy } from "./strategy.ts";

/**
 * Chooses a backend that was not tried yet, or, when all were, one that was. Backends of weight 0 stand by: they are
 * chosen only when no other is available. Undefined when no available backend serves the model.
 */
export function selectBackend(
  candidates: readonly BackendEntry[],
  operation: Operation,
  tried: ReadonlySet<string>,
  strategy: SelectionStrategy,
  query: SelectionQuery,
  allows: (backendName: string) => boolean,
): BackendEntry | undefined {
  const offers = (entry: BackendEntry) => hasOperation(entry, operation) && allows(entry.backend.name);
  const active = (entry: BackendEntry) => entry.backend.weight > 0 && offers(entry);
  if (tried.size === 0) return strategy.select(candidates, active, query) ?? strategy.select(candidates, offers, query);
  const untried = (entry: BackendEntry) => !tried.has(entry.backend.name);
  return (
    strategy.select(candidates, (entry) => active(entry) && untried(entry), query) ??
    strategy.select(candidates, (entry) => offers(entry) && untried(entry), query) ??
    strategy.select(candidates, active, query) ??
    strategy.select(candidates, offers, query)
  );
}

/** Whether the backend can do it, be it by means of another operation. */
export function hasOperation({ backend }: BackendEntry, operation: Operation): boolean {
  return servedBy(backend.paths, operation) !== undefined;
}

/** Why no backend can take a request (specification, Errors: 404 and 503). */
export function noBackendError(
  board: BackendBoard,
  model: string,
  operation: Operation,
  circuits: Pick<Circuits, "retryAfterMs">,
): GatewayError {
  const enabled = board.entries.filter((entry) => entry.backend.enabled);
  if (enabled.length === 0) return new GatewayError(ERRORS.noBackends, "No backends available");
  if (!enabled.some((entry) => entry.available)) {
    return new GatewayError(
      ERRORS.allBackendsUnhealthy,
      `No backend is healthy at the moment: ${listNames(enabled)}. GET /admin/backends shows why.`,
    );
  }
  const available = board.candidates(model);
  const offering = available.filter((entry) => hasOperation(entry, operation));
  if (offering.length > 0) return circuitOpenError(model, offering, circuits);
  if (available.length > 0) {
    return new GatewayError(
      ERRORS.unsupportedOperation,
      `The backends that serve the model '${model}' (${listNames(available)}) have no ${operation} endpoint.`,
      { param: "model" },
    );
  }
  const serving = board.serving(model);
  const reason =
    serving.length > 0
      ? `is served only by backends that are not available at the moment (${listNames(serving)})`
      : "is not served by any backend; GET /v1/models lists the models";
  return new GatewayError(ERRORS.modelNotFound, `The model '${model}' ${reason}.`, { param: "model" });
}

function circuitOpenError(
  model: string,
  entries: readonly BackendEntry[],
  circuits: Pick<Circuits, "retryAfterMs">,
): GatewayError {
  const waitMs = Math.min(...entries.map(({ backend }) => circuits.retryAfterMs(backend.name)));
  return new GatewayError(
    ERRORS.circuitOpen,
    `The backends that serve the model '${model}' (${listNames(entries)}) have failed repeatedly and are left alone for a moment.`,
    { headers: { "Retry-After": String(Math.max(1, Math.ceil(waitMs / 1000))) } },
  );
}

function listNames(entries: readonly BackendEntry[]): string {
  const names = entries.slice(0, 5).map((entry) => entry.backend.name);
  return entries.length > 5 ? `${names.join(", ")} and ${entries.length - 5} more` : names.join(", ");
}
