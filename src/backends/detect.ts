// Recognising the engine behind a generic backend by what its own model list says.

import type { Backend } from "./backend.ts";
import { BACKEND_KINDS, type BackendKind, SGLANG } from "./kinds.ts";

/** owned_by values that only one engine writes; the others' ("library", "organization_owner") prove nothing. */
const SIGNS: ReadonlyMap<string, BackendKind> = new Map([
  ["llamacpp", BACKEND_KINDS.llamacpp],
  ["vllm", BACKEND_KINDS.vllm],
  ["sglang", SGLANG],
]);

export function isDetectable(backend: Backend): boolean {
  return backend.settings.type === "generic";
}

/**
 * The kind of a generic backend, given the owned_by of each model in its list; undefined when nothing can be told from
 * it (an empty list). A router in front of several engines lists several owners and stays generic.
 */
export function detectKind(owners: readonly (string | undefined)[]): BackendKind | undefined {
  const [first] = owners;
  if (owners.length === 0) return undefined;
  const kind = first !== undefined && owners.every((owner) => owner === first) ? SIGNS.get(first) : undefined;
  return kind ?? BACKEND_KINDS.generic;
}
