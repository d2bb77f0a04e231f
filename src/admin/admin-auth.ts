// The one door of the admin API: who may come in, by which credentials, from where, and after how many failures.

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { createAddressList } from "../access/address-list.ts";
import { acceptedSecrets, expired, hasExpired } from "../access/api-keys.ts";
import type { KeyIdentity } from "../access/key-identity.ts";
import type { Settings } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../lib/clock.ts";
import type { AdminDoor, Administrator } from "../server/endpoint.ts";
import { createFailedAttempts } from "./failed-attempts.ts";
import { requireLocalRequest, requireSameOrigin } from "./request-origin.ts";

export interface AdminDoorParts {
  /** Those that run now: a change of admin.auth holds from the next request on. */
  settings(): Settings;
  identify: KeyIdentity;
  clock: Clock;
  log: { warn(fields: object, message: string): void };
}

interface Credential extends Administrator {
  text: string;
  hasScope: boolean;
  expiresAtMs: number;
}

/** What was presented. */
type Verdict = "wrong" | Credential;

interface Lock {
  auth: Settings["admin"]["auth"];
  keys: Settings["api_keys"]["keys"];
  isListed(address: string | undefined): boolean;
  verify(presented: string): Verdict;
  challenge: Record<string, string>;
}

/** A unix socket is a file of this machine: its peers count as this address in ip_whitelist. */
const UNIX_PEER_ADDRESS = "127.0.0.1";

export function createAdminDoor({ settings, identify, clock, log }: AdminDoorParts): AdminDoor {
  // Both sides of a comparison are hashed first: neither their length nor where they differ can be measured.
  const secret = randomBytes(32);
  const digest = (text: string) => createHmac("sha256", secret).update(text).digest();
  const attempts = createFailedAttempts(clock);
  let lock: Lock | undefined;

  function currentLock(): Lock {
    const { admin, api_keys } = settings();
    if (lock?.auth !== admin.auth || lock.keys !== api_keys.keys) {
      lock = createLock(admin.auth, api_keys.keys, identify, digest);
    }
    return lock;
  }

  return {
    admit(request, addresses) {
      const { auth, isListed, verify, challenge } = currentLock();
      const { headers } = request;
      if (auth.method === "none") {
        requireLocalRequest(headers, addresses.peer);
        if (!isListed(addresses.client)) throw notListed();
        requireSameOrigin(headers);
        return { name: undefined, elevated: false };
      }
      const presented = presentedCredential(auth.method, headers);
      const user =
        auth.method === "basic" && presented !== undefined ? digest(userOf(presented)).toString("hex") : undefined;
      const guesser = { address: addresses.client, user };
      const refusal = presented === undefined ? undefined : attempts.refusal(guesser, auth);
      // A password may be short enough to be guessed: while somebody guesses, not every one is looked at. A token or key
      // is not, and whoever has the right one is not kept out by others behind the same address.
      if (refusal !== undefined && auth.method === "basic") throw refusal;
      const verdict = presented === undefined ? "missing" : verify(presented);
      if (verdict === "missing" || verdict === "wrong") {
        if (refusal !== undefined) throw refusal;
        if (verdict === "wrong") {
          attempts.record(guesser, auth);
          log.warn({ address: addresses.client }, "wrong credentials for the admin API");
        }
        throw new GatewayError(ERRORS.invalidApiKey, refusalText(auth.method, verdict), { headers: challenge });
      }
      if (hasExpired(verdict.expiresAtMs, clock.wallTime)) throw expired(challenge);
      if (!verdict.hasScope) {
        throw new GatewayError(ERRORS.missingScope, "The API key has no scope 'admin', which the admin API needs.");
      }
      if (!isListed(addresses.client)) throw notListed();
      requireSameOrigin(headers);
      return { name: verdict.name, elevated: verdict.elevated };
    },
  };
}

function createLock(
  auth: Lock["auth"],
  keys: Lock["keys"],
  identify: KeyIdentity,
  digest: (text: string) => Buffer,
): Lock {
  const whitelist = createAddressList(auth.ip_whitelist);
  return {
    auth,
    keys,
    isListed: (address) => whitelist.isEmpty || whitelist.contains(address ?? UNIX_PEER_ADDRESS),
    verify: createVerifier(credentialsOf(auth, keys, identify), digest),
    challenge: challengeOf(auth.method),
  };
}

/** Credentials that are not configured let nobody in: the configuration refuses such settings, and so does this. */
function createVerifier(
  accepted: readonly Credential[],
  digest: (text: string) => Buffer,
): (presented: string) => Verdict {
  const digested = accepted.map((credential) => ({ credential, digest: digest(credential.text) }));
  return (presented) => {
    const hashed = digest(presented);
    let found: Credential | undefined;
    // All of them, whichever is the right one: how long it takes tells nothing.
    for (const entry of digested) if (timingSafeEqual(hashed, entry.digest)) found = entry.credential;
    return found ?? "wrong";
  };
}

const LASTING = { elevated: true, hasScope: true, expiresAtMs: Number.POSITIVE_INFINITY };

/** What must be presented, in the form of presentedCredential(). */
function credentialsOf(auth: Lock["auth"], keys: Lock["keys"], identify: KeyIdentity): Credential[] {
  const token = auth.token === undefined ? [] : [{ ...LASTING, text: auth.token, name: "admin token" }];
  switch (auth.method) {
    case "none":
      return [];
    case "bearer_token":
      return token;
    case "basic": {
      const { username, password } = auth;
      if (username === undefined || password === undefined) return [];
      return [{ ...LASTING, text: `${username}:${password}`, name: username }];
    }
    case "api_key": {
      const secrets = keys.flatMap((key) => acceptedSecrets(key, identify));
      const ofKeys = secrets.map(({ secret, caller, expiresAtMs }) => ({
        text: secret,
        name: caller.keyId,
        elevated: true,
        hasScope: caller.scopes.has("admin"),
        expiresAtMs,
      }));
      return [...ofKeys, ...token];
    }
  }
}

/** Undefined where a request has no credentials for this method. */
function presentedCredential(method: Lock["auth"]["method"], headers: Headers): string | undefined {
  const authorization = headers.get("authorization") ?? "";
  switch (method) {
    case "none":
      return undefined;
    case "bearer_token":
      return /^bearer\s+(\S.*?)\s*$/i.exec(authorization)?.[1];
    case "basic": {
      const encoded = /^basic\s+(\S+)\s*$/i.exec(authorization)?.[1];
      // A username has no colon: user and password as one text are right exactly when both are.
      return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("utf8");
    }
    case "api_key":
      return headers.get("x-api-key") ?? undefined;
  }
}

/** Of a basic credential. */
function userOf(presented: string): string {
  return presented.split(":", 1)[0] as string;
}

function challengeOf(method: Lock["auth"]["method"]): Record<string, string> {
  if (method === "bearer_token") return { "WWW-Authenticate": 'Bearer realm="Signalbox admin API"' };
  if (method === "basic") return { "WWW-Authenticate": 'Basic realm="Signalbox admin API", charset="UTF-8"' };
  return {};
}

const HOW: Readonly<Record<Lock["auth"]["method"], string>> = {
  none: "",
  bearer_token: "'Authorization: Bearer <token>'",
  basic: "'Authorization: Basic <username and password>'",
  api_key: "'X-API-Key: <key>'",
};

function refusalText(method: Lock["auth"]["method"], verdict: "missing" | "wrong"): string {
  if (verdict === "wrong") return "The credentials for the admin API are not valid.";
  return `The admin API needs credentials: send the header ${HOW[method]}.`;
}

function notListed(): GatewayError {
  return new GatewayError(ERRORS.forbidden, "This address is not in admin.auth.ip_whitelist.");
}
