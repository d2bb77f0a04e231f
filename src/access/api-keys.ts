// Who calls: API keys of the public API and what their scopes allow (specification, Authentication; decisions.md, 3).

import type { SCOPES } from "../config/sections/api-keys.ts";
import type { Settings } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { KeyIdentity } from "./key-identity.ts";

export type Scope = (typeof SCOPES)[number];

export interface Caller {
  /** By which the key is known, see key-identity.ts. */
  keyId: string;
  userId: string | undefined;
  organizationId: string | undefined;
  scopes: ReadonlySet<Scope>;
}

export interface AccessControl {
  /** The caller behind the request's key; throws 401 or 403 when it may not use an endpoint that needs the scope. */
  authorize(headers: Headers, scope: Scope): Caller | undefined;
}

export function createAccessControl(settings: Settings["api_keys"], identify: KeyIdentity): AccessControl {
  const callers = new Map<string, Caller>();
  for (const key of settings.keys) {
    if (key.enabled) callers.set(key.key, callerOf(key, identify));
  }
  const blocking = settings.mode === "blocking";

  return {
    authorize(headers, scope) {
      if (!blocking && callers.size === 0) return undefined;
      const key = presentedKey(headers);
      const caller = key === undefined ? undefined : callers.get(key);
      if (caller === undefined) {
        if (!blocking) return undefined; // permissive: SDKs send placeholder keys, which must not be refused
        throw new GatewayError(
          ERRORS.invalidApiKey,
          key === undefined
            ? "An API key is required: send it as the header 'Authorization: Bearer <key>'."
            : "The API key is not valid.",
          { headers: { "WWW-Authenticate": "Bearer" } },
        );
      }
      if (!caller.scopes.has(scope)) {
        throw new GatewayError(ERRORS.missingScope, `The API key has no scope '${scope}', which this endpoint needs.`);
      }
      return caller;
    },
  };
}

export function callerOf(key: Settings["api_keys"]["keys"][number], identify: KeyIdentity): Caller {
  return {
    keyId: identify(key),
    userId: key.user_id,
    organizationId: key.organization_id,
    scopes: new Set(key.scopes),
  };
}

/** The key of a request, as a bearer token or as x-api-key. */
export function presentedKey(headers: Headers): string | undefined {
  const authorization = headers.get("authorization");
  if (authorization !== null) {
    const key = /^bearer\s+(\S+)\s*$/i.exec(authorization)?.[1];
    if (key !== undefined) return key;
  }
  return headers.get("x-api-key") ?? undefined;
}
