// Recognising the engine behind a generic backend by what its own model list says.

import { UNKNOWN_KIND } from "../names.ts";
import type { Backend } from "./backend.ts";
import type { BackendKind } from "./kind.ts";
import { BACKEND_KINDS } from "./kinds.ts";

/** By the owned_by that only they write; that of others ("library", "organization_owner") proves nothing. */
const SIGNS: ReadonlyMap<string | undefined, BackendKind> = new Map(
  Object.values(BACKEND_KINDS).flatMap((kind) => (kind.ownerSign === undefined ? [] : [[kind.ownerSign, kind]])),
);

export function isDetectable(backend: Backend): boolean {
  return backend.settings.type === UNKNOWN_KIND;
}

/**
 * The kind of a generic backend, given the owned_by of each model in its list; undefined when nothing can be concluded from
 * it (an empty list). A router in front of several engines lists several owners and stays generic.
 */
export function detectKind(owners: readonly (string | undefined)[]): BackendKind | undefined {
  if (owners.length === 0) return undefined;
  return recognisedKind(owners) ?? BACKEND_KINDS[UNKNOWN_KIND];
}

/** The engine that all of the models are owned by; undefined for any other list. */
export function recognisedKind([first, ...others]: readonly (string | undefined)[]): BackendKind | undefined {
  return first !== undefined && others.every((owner) => owner === first) ? SIGNS.get(first) : undefined;
}

/** The engine that names itself in the header Server of its answers. */
export function kindOfServer(server: string | undefined): BackendKind | undefined {
  return server === undefined ? undefined : Object.values(BACKEND_KINDS).find((kind) => kind.serverSign === server);
}
