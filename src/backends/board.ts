// The backend board: an immutable read model of all backends, published by the control plane, read once per request.

import type { Offer } from "../generation/intake.ts";
import type { Backend, BackendCounters } from "./backend.ts";
import type { Operation } from "./operations.ts";

/** `unhealthy` is reached from any other state and left by successes only. */
export type HealthState = "unknown" | "ready" | "warming_up" | "down" | "unhealthy";

export interface BackendEntry {
  /** A generic backend whose engine was recognised carries the kind that was found. */
  backend: Backend;
  health: HealthState;
  /** True if requests may be sent: enabled, not draining, and ready (or health checks are off). */
  available: boolean;
  /** Undefined: nothing is known of its models but their names. */
  offer?: Offer | undefined;
  /** Shared by every board, so that counts survive a new board. */
  counters: BackendCounters;
}

export interface BackendBoard {
  version: number;
  entries: readonly BackendEntry[];
  /** Available backends that serve a model, in configuration order; the array is the same object for one board. */
  candidates(model: string): readonly BackendEntry[];
  /** Every configured backend that serves a model, or served it when it was last asked. */
  serving(model: string): readonly BackendEntry[];
  /** The name under which a backend itself lists a model that it serves. */
  listedAs(backendName: string, model: string): string | undefined;
  /** The ids of the models that available backends serve; one may come twice. */
  models(): Iterable<string>;
}

/** True if an available backend that serves the model has the operation itself. */
export function hasNative(board: Pick<BackendBoard, "candidates">, model: string, operation: Operation): boolean {
  return board.candidates(model).some(({ backend }) => backend.paths[operation] !== undefined);
}
