// To whom belongs what the gateway keeps of requests: cached answers, calls in flight, conversations.

import type { Caller } from "./api-keys.ts";

/**
 * The caller's organisation, else its user, else its key; all without a key are one owner. Each kind has names of its
 * own: a key that is called like an organisation is somebody else.
 */
export function ownerOf(caller: Pick<Caller, "keyId" | "userId" | "organizationId"> | undefined): string {
  if (caller === undefined) return "anonymous";
  const { organizationId, userId, keyId } = caller;
  if (organizationId !== undefined) return `organization:${organizationId}`;
  return userId !== undefined ? `user:${userId}` : `key:${keyId}`;
}
