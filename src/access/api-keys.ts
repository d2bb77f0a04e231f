// Who calls: API keys and tokens of the public API and what they allow (docs/api.md).

import type { Settings } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Eventually } from "../lib/eventually.ts";
import { modelsOf } from "./allowed-models.ts";
import type { Caller, Scope } from "./caller.ts";
import type { CallerReference, TokenReference } from "./caller-reference.ts";
import type { KeyIdentity } from "./key-identity.ts";
import { callerOf, type KeySettings } from "./key-rights.ts";
import { createOrganizations } from "./organizations.ts";
import { NO_STORED_KEYS, type StoredKeys } from "./stored-keys.ts";

export interface AccessControl {
  /**
   * Throws 401 or 403 when the caller may not use an endpoint that needs the scope, or rejects with it where a token is
   * checked for the first time.
   * @param scope - "any_key": whatever scopes it has, but it must have a key or a token, in mode permissive too
   * @param visit - gets the caller behind the request's key or token, also one that is refused
   * @param inQuery - a key in the query, which counts where no header has one
   */
  authorize(
    headers: Headers,
    scope: Scope | "any_key",
    visit: WithCaller,
    inQuery?: string | undefined,
  ): void | Promise<void>;
  /** The same for work that a caller has asked for earlier, with what its key allows now. */
  authorizeLater(reference: CallerReference, scope: Scope, visit: WithCaller): void;
}

interface WithCaller {
  caller: Caller | undefined;
}

interface AcceptedSecret {
  secret: string;
  caller: Caller;
}

/** Of the issuers in api_keys.jwt. */
export interface TokenVerifier {
  /** Undefined for a text that is no token of theirs. Throws 401 or 503, or rejects with it. */
  accept(text: string): Eventually<Caller | undefined>;
}

const CHALLENGE = { "WWW-Authenticate": "Bearer" };

export function createAccessControl(
  { api_keys: { mode, keys, jwt }, organizations: list }: Pick<Settings, "api_keys" | "organizations">,
  identify: KeyIdentity,
  wallTime: () => number,
  tokens?: TokenVerifier,
  stored: Pick<StoredKeys, "accept" | "isEmpty" | "find"> = NO_STORED_KEYS,
): AccessControl {
  const accepted = new Map<string, Caller>();
  for (const key of keys) for (const { secret, caller } of acceptedSecrets(key, identify)) accepted.set(secret, caller);
  const blocking = mode === "blocking";
  const organizations = createOrganizations(list);

  function admit(caller: Caller | undefined, isPresent: boolean, scope: Scope | "any_key", visit: WithCaller): void {
    if (caller === undefined) {
      if (!blocking && scope !== "any_key") return; // permissive: SDKs send placeholder keys, which must not be refused
      const message = isPresent
        ? "The API key is not valid."
        : "An API key is required: send it as the header 'Authorization: Bearer <key>'.";
      throw new GatewayError(ERRORS.invalidApiKey, message, { headers: CHALLENGE });
    }
    visit.caller = caller; // also of one that is refused below
    visit.caller = organizations.admit(caller);
    if (hasExpired(caller.expiresAtMs, wallTime)) throw expired(CHALLENGE);
    if (scope !== "any_key" && !caller.scopes.has(scope)) {
      throw new GatewayError(ERRORS.missingScope, `The API key has no scope '${scope}', which this endpoint needs.`);
    }
  }

  /** Undefined where there is no such caller any more. */
  function callerBehind(reference: Exclude<CallerReference, { kind: "none" }>): Caller | undefined {
    if (reference.kind === "token") {
      return jwt.some(({ issuer }) => issuer === reference.token.issuer) ? callerWithToken(reference) : undefined;
    }
    const own = keys.find((key) => key.enabled && identify(key) === reference.id);
    if (own !== undefined) return accepted.get(own.key);
    const rights = stored.find(reference.id)?.rights;
    return rights?.enabled ? callerOf(rights, reference.id) : undefined;
  }

  return {
    authorizeLater(reference, scope, visit) {
      if (reference.kind === "none") return admit(undefined, false, scope, visit);
      const caller = callerBehind(reference);
      if (caller === undefined) {
        throw new GatewayError(ERRORS.invalidApiKey, "The API key that asked for this is no longer valid.");
      }
      admit(caller, true, scope, visit);
    },
    authorize(headers, scope, visit, inQuery) {
      if (!blocking && accepted.size === 0 && tokens === undefined && scope !== "any_key" && stored.isEmpty) return;
      const key = presentedKey(headers) ?? inQuery;
      const found = key === undefined ? undefined : (accepted.get(key) ?? tokens?.accept(key) ?? stored.accept(key));
      if (found instanceof Promise) return found.then((token) => admit(token, true, scope, visit));
      admit(found, key !== undefined, scope, visit);
    },
  };
}

/** The secrets of a key: its own, and the one before the last rotation. None of a key that is switched off. */
export function acceptedSecrets(key: KeySettings, identify: KeyIdentity): AcceptedSecret[] {
  if (!key.enabled) return [];
  const own = { secret: key.key, caller: callerOf(key, identify(key)) };
  if (key.previous === undefined) return [own];
  const { previous } = key;
  const expires_at = Math.min(key.expires_at ?? Number.POSITIVE_INFINITY, previous.expires_at);
  const old = { ...key, key: previous.key, expires_at };
  return [own, { secret: previous.key, caller: callerOf(old, identify(old)) }];
}

/** The token itself may have ended: what it asked for goes on. */
function callerWithToken({ id, token, userId, organizationId, scopes }: TokenReference): Caller {
  return {
    keyId: id,
    userId,
    organizationId,
    scopes: new Set(scopes),
    ...modelsOf(token.models),
    token,
    requestsPerMinute: undefined,
    expiresAtMs: Number.POSITIVE_INFINITY,
  };
}

/** The clock is looked at only for what has an end. */
export function hasExpired(expiresAtMs: number, wallTime: () => number): boolean {
  return expiresAtMs !== Number.POSITIVE_INFINITY && expiresAtMs <= wallTime();
}

export function expired(headers: Record<string, string>): GatewayError {
  return new GatewayError(ERRORS.expiredApiKey, "The API key has expired, or was replaced by a new one.", { headers });
}

/** Throws 403 where the caller's key is for other models. */
export function requireModel(caller: Caller | undefined, model: string): void {
  if (caller?.allowsModel === undefined || caller.allowsModel(model)) return;
  const message = "The API key may not use this model; GET /v1/models lists those that it may.";
  throw new GatewayError(ERRORS.modelNotAllowed, message, { param: "model" });
}

/** The key of a request, as a bearer token, as x-api-key or as x-goog-api-key. */
export function presentedKey(headers: Headers): string | undefined {
  const authorization = headers.get("authorization");
  if (authorization !== null) {
    const key = /^bearer\s+(\S+)\s*$/i.exec(authorization)?.[1];
    if (key !== undefined) return key;
  }
  return headers.get("x-api-key") ?? headers.get("x-goog-api-key") ?? undefined;
}

/** The key in a URL, as clients of Google's API may send it; an empty one is none. */
export function keyInQuery(url: string): string | undefined {
  const query = url.indexOf("?");
  return query < 0 ? undefined : new URLSearchParams(url.slice(query)).get("key") || undefined;
}
