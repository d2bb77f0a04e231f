// The one door of the admin API: who may come in, by which credentials, from where, and after how many failures.

import { createAddressList } from "../access/address-list.ts";
import { acceptedSecrets, expired, hasExpired } from "../access/api-keys.ts";
import { basicCredential, createDigest } from "../access/credentials.ts";
import type { KeyIdentity } from "../access/key-identity.ts";
import type { Settings } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../lib/clock.ts";
import type { AdminDoor, Administrator } from "../server/endpoint.ts";
import { createFailedAttempts } from "./failed-attempts.ts";
import { requireLocalRequest, requireSameOrigin } from "./request-origin.ts";

interface AdminDoorParts {
  /** Those that run now: a change of admin.auth holds from the next request on. */
  settings(): Settings;
  identify: KeyIdentity;
  clock: Clock;
  log: { warn(fields: object, message: string): void };
}

type Auth = Settings["admin"]["auth"];
type Keys = Settings["api_keys"]["keys"];

interface Credential extends Administrator {
  text: string;
  hasScope: boolean;
  expiresAtMs: number;
}

/** A unix socket is a file of this machine: its peers count as this address in ip_whitelist. */
const UNIX_PEER_ADDRESS = "127.0.0.1";

export function createAdminDoor({ settings, identify, clock, log }: AdminDoorParts): AdminDoor {
  const digest = createDigest();
  const attempts = createFailedAttempts(clock);
  let lock: ReturnType<typeof createLock> | undefined;

  function currentLock() {
    const { admin, api_keys } = settings();
    if (lock?.auth !== admin.auth || lock.keys !== api_keys.keys) {
      lock = createLock(admin.auth, api_keys.keys, identify, digest);
    }
    return lock;
  }

  return {
    admit(request, addresses) {
      const { auth, isListed, find } = currentLock();
      const { headers } = request;
      if (auth.method === "none") {
        requireLocalRequest(headers, addresses.peer);
        if (!isListed(addresses.client)) throw notListed();
        requireSameOrigin(headers);
        return { name: undefined, elevated: false };
      }
      const { how, challenge, presentedIn } = METHODS[auth.method];
      const presented = presentedIn(headers);
      const user =
        auth.method === "basic" && presented !== undefined ? digest(userOf(presented)).toString("hex") : undefined;
      const guesser = { address: addresses.client, user };
      const refusal = presented === undefined ? undefined : attempts.refusal(guesser, auth);
      // A password may be short enough to be guessed: while somebody guesses, not every one is looked at. A token or key
      // is not, and whoever has the right one is not kept out by others behind the same address.
      if (refusal !== undefined && auth.method === "basic") throw refusal;
      const found = presented === undefined ? undefined : find(presented);
      if (found === undefined) {
        if (refusal !== undefined) throw refusal;
        let message = `The admin API needs credentials: send the header ${how}.`;
        if (presented !== undefined) {
          attempts.record(guesser, auth);
          log.warn({ address: addresses.client }, "wrong credentials for the admin API");
          message = "The credentials for the admin API are not valid.";
        }
        throw new GatewayError(ERRORS.invalidApiKey, message, { headers: challenge });
      }
      if (hasExpired(found.expiresAtMs, clock.wallTime)) throw expired(challenge);
      if (!found.hasScope) {
        throw new GatewayError(ERRORS.missingScope, "The API key has no scope 'admin', which the admin API needs.");
      }
      if (!isListed(addresses.client)) throw notListed();
      requireSameOrigin(headers);
      return { name: found.name, elevated: found.elevated };
    },
  };
}

function createLock(auth: Auth, keys: Keys, identify: KeyIdentity, digest: (text: string) => Buffer) {
  const whitelist = createAddressList(auth.ip_whitelist);
  const accepted = auth.method === "none" ? [] : METHODS[auth.method].accepted(auth, keys, identify);
  const digested = accepted.map((credential) => ({ credential, digest: digest(credential.text) }));
  return {
    auth,
    keys,
    isListed: (address: string | undefined) => whitelist.isEmpty || whitelist.contains(address ?? UNIX_PEER_ADDRESS),
    find(presented: string): Credential | undefined {
      const hashed = digest(presented);
      let found: Credential | undefined;
      // All of them, whichever is the right one: how long it takes tells nothing.
      for (const entry of digested) if (crypto.timingSafeEqual(hashed, entry.digest)) found = entry.credential;
      return found;
    },
  };
}

const LASTING = { elevated: true, hasScope: true, expiresAtMs: Number.POSITIVE_INFINITY };

function tokenOf({ token }: Auth): Credential[] {
  return token === undefined ? [] : [{ ...LASTING, text: token, name: "admin token" }];
}

interface Method {
  /** The header that credentials stand in, as a refusal asks for it. */
  how: string;
  challenge: Record<string, string>;
  /** Undefined where a request has no credentials for this method. */
  presentedIn(headers: Headers): string | undefined;
  /**
   * What must be presented. Credentials that are not configured let nobody in: the configuration refuses such settings,
   * and so does this.
   */
  accepted(auth: Auth, keys: Keys, identify: KeyIdentity): Credential[];
}

const METHODS: Readonly<Record<Exclude<Auth["method"], "none">, Method>> = {
  bearer_token: {
    how: "'Authorization: Bearer <token>'",
    challenge: { "WWW-Authenticate": 'Bearer realm="Signalbox admin API"' },
    presentedIn: (headers) => /^bearer\s+(\S.*?)\s*$/i.exec(headers.get("authorization") ?? "")?.[1],
    accepted: tokenOf,
  },
  basic: {
    how: "'Authorization: Basic <username and password>'",
    challenge: { "WWW-Authenticate": 'Basic realm="Signalbox admin API", charset="UTF-8"' },
    presentedIn: basicCredential,
    accepted({ username, password }) {
      if (username === undefined || password === undefined) return [];
      return [{ ...LASTING, text: `${username}:${password}`, name: username }];
    },
  },
  api_key: {
    how: "'X-API-Key: <key>'",
    challenge: {},
    presentedIn: (headers) => headers.get("x-api-key") ?? undefined,
    accepted(auth, keys, identify) {
      const secrets = keys.flatMap((key) => acceptedSecrets(key, identify));
      const ofKeys = secrets.map(({ secret, caller, expiresAtMs }) => ({
        text: secret,
        name: caller.keyId,
        elevated: true,
        hasScope: caller.scopes.has("admin"),
        expiresAtMs,
      }));
      return [...ofKeys, ...tokenOf(auth)];
    },
  },
};

/** Of a basic credential. */
function userOf(presented: string): string {
  return presented.split(":", 1)[0] as string;
}

function notListed(): GatewayError {
  return new GatewayError(ERRORS.forbidden, "This address is not in admin.auth.ip_whitelist.");
}
