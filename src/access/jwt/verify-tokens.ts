// Who a token says its bearer is (JWT, RFC 7519): signed by an issuer of the configuration, for this gateway, and of this time.

import { decodeJwt, errors, type JWTPayload, type JWTVerifyGetKey, type JWTVerifyOptions, jwtVerify } from "jose";
import { SCOPES } from "../../config/sections/api-keys.ts";
import type { Settings } from "../../config/sections/registry.ts";
import { ERRORS } from "../../errors/catalog.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../logging/logger.ts";
import { modelsOf } from "../allowed-models.ts";
import { expired, type TokenVerifier } from "../api-keys.ts";
import type { Caller, Scope } from "../caller.ts";
import { claimAt, listOf, textOf } from "./claims.ts";
import { fetchedKeySet, fixedKeySet, type KeySet } from "./key-set.ts";

type IssuerSettings = Settings["api_keys"]["jwt"][number];

interface Issuer {
  settings: IssuerSettings;
  keySet: KeySet;
}

/** A token that was checked, and the keys that it was checked with. */
interface Checked {
  caller: Caller;
  issuer: Issuer;
  keys: JWTVerifyGetKey;
}

/** Three parts in base64url, RFC 7515, section 7.1. */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
const MAX_TOKEN_LENGTH = 8_192;
const REMEMBERED = { maxEntries: 10_000, maxBytes: 16 * 1024 * 1024, ttlMs: 10 * 60_000 };
/** The scope admin is left out: the admin API has credentials of its own. */
const TOKEN_SCOPES: readonly Scope[] = SCOPES.filter((scope) => scope !== "admin");
const USUAL_SCOPES: ReadonlySet<Scope> = new Set(TOKEN_SCOPES);

interface VerifierParts {
  clock: Clock;
  log: Logger;
}

export function createTokenVerifier(
  settings: readonly IssuerSettings[],
  files: ReadonlyMap<string, string>,
  { clock, log }: VerifierParts,
): TokenVerifier & { stop(): void } {
  const issuers = new Map<string, Issuer>();
  for (const each of settings) {
    const { issuer, jwks_url, jwks_file = "" } = each;
    const keySet =
      jwks_url === undefined ? fixedKeySet(files.get(jwks_file) as string) : fetchedKeySet(jwks_url, clock, log);
    issuers.set(issuer, { settings: each, keySet });
  }
  const remembered = new BoundedMap<Checked>({ ...REMEMBERED, now: clock.now });

  /** The issuer that a token claims to be of. */
  function issuerOf(token: string): Issuer | undefined {
    if (token.length > MAX_TOKEN_LENGTH || !COMPACT.test(token)) return undefined;
    let claims: JWTPayload;
    try {
      claims = decodeJwt(token);
    } catch {
      return undefined;
    }
    return issuers.get(claims.iss as string);
  }

  async function check(token: string, issuer: Issuer): Promise<Checked> {
    const { settings: own, keySet } = issuer;
    if (keySet.keys === undefined) await keySet.refresh();
    for (let isLastTry = false; ; isLastTry = true) {
      const { keys } = keySet;
      if (keys === undefined) {
        throw new GatewayError(
          ERRORS.tokenKeysUnavailable,
          "The keys that tokens are checked with cannot be fetched now.",
        );
      }
      try {
        const claims = await verified(token, keys, {
          issuer: own.issuer,
          audience: own.audience,
          algorithms: own.algorithms,
          clockTolerance: own.clock_skew / 1000,
          requiredClaims: ["exp"],
          currentDate: new Date(clock.wallTime()),
        });
        return { caller: callerOf(claims, own), issuer, keys };
      } catch (error) {
        if (!isLastTry && error instanceof errors.JWKSNoMatchingKey) {
          await keySet.refresh(); // the issuer may have changed its keys
          if (keySet.keys !== keys) continue;
        }
        throw refusalOf(error);
      }
    }
  }

  return {
    accept(token) {
      const known = remembered.get(token);
      if (known !== undefined && known.keys === known.issuer.keySet.keys) return known.caller;
      const issuer = issuerOf(token);
      if (issuer === undefined) return undefined;
      return check(token, issuer).then((checked) => {
        remembered.set(token, checked, 0);
        return checked.caller;
      });
    },
    stop() {
      for (const { keySet } of issuers.values()) keySet.stop();
    },
  };
}

/** A token need not say which of several keys of its kind it was signed with; then each is tried. */
async function verified(token: string, keys: JWTVerifyGetKey, options: JWTVerifyOptions): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, keys, options)).payload;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    for await (const key of error) {
      try {
        return (await jwtVerify(token, key, options)).payload;
      } catch (inner) {
        if (!(inner instanceof errors.JWSSignatureVerificationFailed)) throw inner;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

function callerOf(claims: JWTPayload, { issuer, claims: names, clock_skew }: IssuerSettings): Caller {
  const user = textOf(claimAt(claims, names.user));
  if (user === undefined) throw refused(`it has no claim '${names.user}', which names its user`);
  const scopes = names.scopes === undefined ? undefined : listOf(claimAt(claims, names.scopes));
  const models = names.models === undefined ? undefined : listOf(claimAt(claims, names.models));
  return {
    keyId: `jwt:${user}`,
    userId: user,
    organizationId: names.organization === undefined ? undefined : textOf(claimAt(claims, names.organization)),
    scopes: scopes === undefined ? USUAL_SCOPES : new Set(TOKEN_SCOPES.filter((scope) => scopes.includes(scope))),
    ...modelsOf(models),
    token: { issuer, models },
    requestsPerMinute: undefined,
    expiresAtMs: (claims.exp as number) * 1000 + clock_skew,
  };
}

function refusalOf(error: unknown): unknown {
  if (error instanceof errors.JWTExpired) return expired(CHALLENGE);
  if (error instanceof errors.JWTClaimValidationFailed)
    return refused(`its claim '${error.claim}' is not the expected one`);
  if (error instanceof errors.JWKSNoMatchingKey) return refused("its issuer has no such key");
  if (error instanceof errors.JOSEAlgNotAllowed)
    return refused("its algorithm is not one of api_keys.jwt[].algorithms");
  if (error instanceof errors.JWSSignatureVerificationFailed) return refused("its signature is wrong");
  if (error instanceof errors.JOSEError) return refused("it is malformed");
  // The library and the runtime have errors of their own for keys that are too short or damaged.
  return error instanceof GatewayError ? error : refused("the key of its issuer that it names cannot be used");
}

/** RFC 6750, section 3.1. */
const CHALLENGE = { "WWW-Authenticate": 'Bearer error="invalid_token"' };

function refused(reason: string): GatewayError {
  return new GatewayError(ERRORS.invalidApiKey, `The token is not valid: ${reason}.`, { headers: CHALLENGE });
}
