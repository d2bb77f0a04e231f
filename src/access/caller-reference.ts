// Who asked for work that is done later: a reference without a secret, which is resolved when the work is done.

import type { Caller, Scope } from "./caller.ts";

export type CallerReference = { kind: "none" } | { kind: "key"; id: string } | TokenReference;

/** The issuer cannot be asked again what a token allows: this is what it did. */
export interface TokenReference {
  kind: "token";
  id: string;
  token: NonNullable<Caller["token"]>;
  userId: string | undefined;
  organizationId: string | undefined;
  scopes: readonly Scope[];
}

export function referenceTo(caller: Caller | undefined): CallerReference {
  if (caller === undefined) return { kind: "none" };
  const { keyId: id, token, userId, organizationId, scopes } = caller;
  return token === undefined
    ? { kind: "key", id }
    : { kind: "token", id, token, userId, organizationId, scopes: [...scopes] };
}
