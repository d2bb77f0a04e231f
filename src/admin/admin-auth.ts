// The one door of the admin API: who may come in, by which credentials or sign-in, from where, and after how many failures.

import { createAddressList } from "../access/address-list.ts";
import { acceptedSecrets, expired, hasExpired } from "../access/api-keys.ts";
import { basicCredential, createDigest } from "../access/credentials.ts";
import type { KeyIdentity } from "../access/key-identity.ts";
import type { Settings } from "../config/sections/registry.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../lib/clock.ts";
import type { AdminDoor, Administrator, Guest, PeerAddresses, PresentedCredentials } from "../server/endpoint.ts";
import { createFailedAttempts } from "./failed-attempts.ts";
import { requireLocalRequest, requireOwnPage, requireSameOrigin } from "./request-origin.ts";
import { type AdminSession, createSessions, sessionCookie, sessionIds } from "./sessions.ts";

interface AdminDoorParts {
  /** Those that run now: a change of admin.auth holds from the next request on. */
  settings(): Settings;
  identify: KeyIdentity;
  clock: Clock;
  log: { warn(fields: object, message: string): void };
}

type Auth = Settings["admin"]["auth"];
type Keys = Settings["api_keys"]["keys"];

interface PresentedCredential extends Pick<Administrator, "name" | "elevated"> {
  text: string;
  hasScope: boolean;
  expiresAtMs: number;
}

/** A unix socket is a file of this machine: its peers count as this address in ip_whitelist. */
const UNIX_PEER_ADDRESS = "127.0.0.1";

export function createAdminDoor({ settings, identify, clock, log }: AdminDoorParts): AdminDoor {
  const digest = createDigest();
  const attempts = createFailedAttempts(clock);
  const sessions = createSessions(clock.now);
  let lock: ReturnType<typeof createLock> | undefined;
  /** Grows with every change of that by which people sign in: going back does not bring a sign-in back. */
  let era = 0;

  function currentLock() {
    const { admin, api_keys } = settings();
    if (lock?.auth !== admin.auth || lock.keys !== api_keys.keys) {
      const next = createLock(admin.auth, api_keys.keys, identify, digest);
      if (lock !== undefined && lock.sign !== next.sign) era++;
      lock = next;
    }
    return lock;
  }

  /** The administrator who presented it, if it is right; a wrong one is a guess. Throws 401, 403 or 429. */
  function judge(presented: string | undefined, { headers }: Request, client: string | undefined): PresentedCredential {
    const { auth, isListed, find } = currentLock();
    const { how } = METHODS[auth.method as SignInMethod];
    const user =
      auth.method === "basic" && presented !== undefined ? digest(userOf(presented)).toString("hex") : undefined;
    const guesser = { address: client, user };
    const refusal = presented === undefined ? undefined : attempts.refusal(guesser, auth);
    // A password may be short enough to be guessed: during guesses, not every one is looked at. A token or key is not, and
    // the right one passes, whatever others behind the same address present.
    if (refusal !== undefined && auth.method === "basic") throw refusal;
    const found = presented === undefined ? undefined : find(digest(presented));
    if (found === undefined) {
      if (refusal !== undefined) throw refusal;
      let message = `The admin API needs credentials: send the header ${how}.`;
      if (presented !== undefined) {
        attempts.record(guesser, auth);
        log.warn({ address: client }, "wrong credentials for the admin API");
        message = "The credentials for the admin API are not valid.";
      }
      throw unauthorized(message, headers, auth);
    }
    if (hasExpired(found.expiresAtMs, clock.wallTime)) throw expired(challengeTo(headers, auth));
    if (!found.hasScope) {
      throw new GatewayError(ERRORS.missingScope, "The API key has no scope 'admin', which the admin API needs.");
    }
    if (!isListed(client)) throw notListed();
    return found;
  }

  /** Checks again credentials that were accepted before; undefined once they are no longer. */
  function stillRight(
    credential: Buffer,
    method: Auth["method"],
    client: string | undefined,
  ): PresentedCredential | undefined {
    const { auth, isListed, find } = currentLock();
    const found = auth.method === method && isListed(client) ? find(credential) : undefined;
    return found?.hasScope && !hasExpired(found.expiresAtMs, clock.wallTime) ? found : undefined;
  }

  function holderOf(session: AdminSession, client: string | undefined): PresentedCredential | undefined {
    const { auth } = currentLock();
    return session.era === era ? stillRight(session.credential, auth.method, client) : undefined;
  }

  function bySession(
    id: string,
    session: AdminSession,
    found: PresentedCredential,
    client: string | undefined,
  ): Administrator {
    const nowMs = clock.now();
    return {
      name: found.name,
      elevated: found.elevated,
      method: currentLock().auth.method,
      session: { endsInMs: session.endsMs - nowMs, idleEndsInMs: Math.min(session.idleEndsMs, session.endsMs) - nowMs },
      isStillIn: () => sessions.goesOn(id, session) && holderOf(session, client) !== undefined,
    };
  }

  /** Undefined for a request that brings no sign-in, or one that is over. */
  function admitSession(request: Request, client: string | undefined): Administrator | undefined {
    for (const id of sessionIds(request.headers)) {
      const session = sessions.find(id);
      if (session === undefined) continue;
      if (!currentLock().isListed(client)) throw notListed();
      const found = holderOf(session, client);
      if (found === undefined) {
        sessions.close(id);
        continue;
      }
      requireOwnPage(request);
      return bySession(id, session, found, client);
    }
    return undefined;
  }

  /** Serves admin.auth.method `none`, which admits local requests only. */
  function admitLocal({ headers }: Request, { peer, client }: PeerAddresses): Administrator {
    requireLocalRequest(headers, peer);
    if (!currentLock().isListed(client)) throw notListed();
    requireSameOrigin(headers);
    const isStillIn = () => currentLock().auth.method === "none" && currentLock().isListed(client);
    return { name: undefined, elevated: false, method: "none", isStillIn };
  }

  return {
    admit(request, addresses) {
      const { auth } = currentLock();
      const { headers } = request;
      const { client } = addresses;
      if (auth.method === "none") return admitLocal(request, addresses);
      const { method } = auth;
      const presented = METHODS[method].presentedIn(headers);
      if (presented === undefined && headers.has("cookie")) {
        const signedIn = admitSession(request, client);
        if (signedIn !== undefined) {
          requireSameOrigin(headers);
          return signedIn;
        }
        if (sessionIds(headers).length > 0) throw unauthorized(SIGNED_OUT, headers, auth);
      }
      const { name, elevated } = judge(presented, request, client);
      requireSameOrigin(headers);
      const credential = digest(presented as string);
      const isStillIn = () => stillRight(credential, method, client) !== undefined;
      return { name, elevated, method, isStillIn };
    },
    receive(request, addresses): Guest {
      const { headers } = request;
      const { client } = addresses;
      requireSameOrigin(headers);
      return {
        signIn(given) {
          const { auth } = currentLock();
          if (auth.method === "none") return { administrator: admitLocal(request, addresses), cookie: undefined };
          const { presentedBy, presentedIn } = METHODS[auth.method];
          const presented = presentedBy(given) ?? presentedIn(headers);
          const found = judge(presented, request, client);
          for (const earlier of sessionIds(headers)) sessions.close(earlier);
          const { id, session } = sessions.open({ credential: digest(presented as string), era });
          return { administrator: bySession(id, session, found, client), cookie: sessionCookie(request, id) };
        },
      };
    },
    signOut(request) {
      for (const id of sessionIds(request.headers)) sessions.close(id);
      return sessionCookie(request, undefined);
    },
  };
}

const SIGNED_OUT = "This sign-in is over: sign in again.";

/** Says where browsers sign in, and by what; without a challenge, so that the browser shows no dialog of its own. */
function unauthorized(message: string, headers: Headers, auth: Auth): GatewayError {
  const details = { method: auth.method, sign_in: "POST /admin/session" };
  return new GatewayError(ERRORS.invalidApiKey, message, { headers: challengeTo(headers, auth), details });
}

/** A challenge makes a browser ask for a password in a window of its own, over the page that could do so itself. */
function challengeTo(headers: Headers, { method }: Auth): Record<string, string> {
  const mode = headers.get("sec-fetch-mode");
  const isOfPage = mode !== null && mode !== "navigate";
  return isOfPage ? {} : METHODS[method as SignInMethod].challenge;
}

function createLock(auth: Auth, keys: Keys, identify: KeyIdentity, digest: (text: string) => Buffer) {
  const whitelist = createAddressList(auth.ip_whitelist);
  const accepted = auth.method === "none" ? [] : METHODS[auth.method].accepted(auth, keys, identify);
  const digested = accepted.map((credential) => ({ credential, digest: digest(credential.text) }));
  const { method, token, username, password } = auth;
  return {
    auth,
    keys,
    /** The same as long as the credentials of the configuration are. */
    sign: digest(JSON.stringify([method, token, username, password])).toString("hex"),
    isListed: (address: string | undefined) => whitelist.isEmpty || whitelist.contains(address ?? UNIX_PEER_ADDRESS),
    find(hashed: Buffer): PresentedCredential | undefined {
      let found: PresentedCredential | undefined;
      // All of them, whichever is the right one: how long it takes tells nothing.
      for (const entry of digested) if (crypto.timingSafeEqual(hashed, entry.digest)) found = entry.credential;
      return found;
    },
  };
}

const LASTING = { elevated: true, hasScope: true, expiresAtMs: Number.POSITIVE_INFINITY };

function tokenOf({ token }: Auth): PresentedCredential[] {
  return token === undefined ? [] : [{ ...LASTING, text: token, name: "admin token" }];
}

interface AuthMethod {
  /** The header that credentials stand in, as a refusal asks for it. */
  how: string;
  challenge: Record<string, string>;
  /** Undefined where a request has no credentials for this method. */
  presentedIn(headers: Headers): string | undefined;
  /** Undefined where a sign-in has no credentials for this method. */
  presentedBy(given: PresentedCredentials): string | undefined;
  /**
   * The credentials to present. Settings without them admit no caller: the configuration refuses such settings, and so does
   * this.
   */
  accepted(auth: Auth, keys: Keys, identify: KeyIdentity): PresentedCredential[];
}

type SignInMethod = Exclude<Auth["method"], "none">;

const METHODS: Readonly<Record<SignInMethod, AuthMethod>> = {
  bearer_token: {
    how: "'Authorization: Bearer <token>'",
    challenge: { "WWW-Authenticate": 'Bearer realm="Signalbox admin API"' },
    presentedIn: (headers) => /^bearer\s+(\S.*?)\s*$/i.exec(headers.get("authorization") ?? "")?.[1],
    presentedBy: ({ token }) => token,
    accepted: tokenOf,
  },
  basic: {
    how: "'Authorization: Basic <username and password>'",
    challenge: { "WWW-Authenticate": 'Basic realm="Signalbox admin API", charset="UTF-8"' },
    presentedIn: basicCredential,
    presentedBy: ({ username, password }) =>
      username === undefined || password === undefined ? undefined : `${username}:${password}`,
    accepted({ username, password }) {
      if (username === undefined || password === undefined) return [];
      return [{ ...LASTING, text: `${username}:${password}`, name: username }];
    },
  },
  api_key: {
    how: "'X-API-Key: <key>'",
    challenge: {},
    presentedIn: (headers) => headers.get("x-api-key") ?? undefined,
    presentedBy: ({ key, token }) => key ?? token,
    accepted(auth, keys, identify) {
      const secrets = keys.flatMap((key) => acceptedSecrets(key, identify));
      const ofKeys = secrets.map(({ secret, caller }) => ({
        text: secret,
        name: caller.keyId,
        elevated: true,
        hasScope: caller.scopes.has("admin"),
        expiresAtMs: caller.expiresAtMs,
      }));
      return [...ofKeys, ...tokenOf(auth)];
    },
  },
};

function userOf(presented: string): string {
  return presented.split(":", 1)[0] as string;
}

function notListed(): GatewayError {
  return new GatewayError(ERRORS.forbidden, "This address is not in admin.auth.ip_whitelist.");
}
