// Whether a backend can be asked: the one answer behind readiness, health, the metric backend_up and the counts on pages.

import type { BackendEntry } from "../backends/board.ts";
import type { Circuits } from "../routing/circuits.ts";

/** Healthy, or not checked yet, and not held back by its circuit. */
export function canBeAsked(
  { backend, health, available }: BackendEntry,
  circuits: Pick<Circuits, "letsThrough">,
): boolean {
  return backend.enabled && (available || health === "unknown") && circuits.letsThrough(backend.name);
}
