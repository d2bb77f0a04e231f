// To whom belongs what the gateway keeps of requests: cached answers, calls in flight, conversations.

import type { Settings } from "../config/sections/registry.ts";
import type { Caller } from "./caller.ts";
import type { KeyIdentity } from "./key-identity.ts";
import { callerOf } from "./key-rights.ts";

/**
 * The caller's organisation, else its user, else its key; all without a key are one owner. Each kind has names of its
 * own: a key that is called like an organisation is another caller.
 */
export function ownerOf(caller: Pick<Caller, "keyId" | "userId" | "organizationId"> | undefined): string {
  if (caller === undefined) return "anonymous";
  const { organizationId, userId, keyId } = caller;
  if (organizationId !== undefined) return `organization:${organizationId}`;
  return userId !== undefined ? `user:${userId}` : `key:${keyId}`;
}

/** True if requests may come from different owners; in mode permissive all callers without a key are one. */
export function hasSeveralOwners({ mode, keys, jwt }: Settings["api_keys"], identify: KeyIdentity): boolean {
  if (jwt.length > 0) return true;
  const owners = new Set(keys.filter(({ enabled }) => enabled).map((key) => ownerOf(callerOf(key, identify(key)))));
  if (mode === "permissive") owners.add(ownerOf(undefined));
  return owners.size > 1;
}
