// The one door of the admin API: who may come in, by which credentials or sign-in, from where, and after how many failures.

import { expired, hasExpired } from "../access/api-keys.ts";
import { createDigest } from "../access/credentials.ts";
import type { KeyIdentity } from "../access/key-identity.ts";
import type { StoredKeys } from "../access/stored-keys.ts";
import type { Settings } from "../config/sections/registry.ts";
import { includesRole, type Role } from "../config/values/roles.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../lib/clock.ts";
import type { AdminDoor, Administrator, Guest, PeerAddresses } from "../server/endpoint.ts";
import { type AdminHolder, type AdminLock, type Auth, createLock, METHODS, type SignInMethod } from "./admin-lock.ts";
import { createFailedAttempts } from "./failed-attempts.ts";
import { requireRoleOf } from "./missing-role.ts";
import { requireLocalRequest, requireOwnPage, requireSameOrigin } from "./request-origin.ts";
import { type AdminSession, createSessions, type SessionHolder, sessionCookie, sessionIds } from "./sessions.ts";

interface AdminDoorParts {
  /** Those that run now: a change of admin.auth holds from the next request on. */
  settings(): Settings;
  identify: KeyIdentity;
  storedKeys: StoredKeys;
  clock: Clock;
  log: { warn(fields: object, message: string): void };
}

export function createAdminDoor({ settings, identify, storedKeys, clock, log }: AdminDoorParts): AdminDoor {
  const digest = createDigest();
  const attempts = createFailedAttempts(clock);
  const sessions = createSessions(clock.now);
  let lock: AdminLock | undefined;

  function currentLock() {
    const { admin, api_keys } = settings();
    if (lock?.auth !== admin.auth || lock.keys !== api_keys.keys) {
      const next = createLock(admin.auth, api_keys.keys, { identify, storedKeys, digest });
      // Sign-ins end with what they were opened by: going back does not bring them back.
      if (sessions.size > 0) sessions.keepOnly(next.survivors());
      lock = next;
    }
    return lock;
  }

  /** The administrator who presented it, if it is right; a wrong one is a guess. Throws 401, 403 or 429. */
  function judge(presented: string | undefined, { headers }: Request, client: string | undefined) {
    const { auth, isListed, holderOf, findHolder } = currentLock();
    const { how } = METHODS[auth.method as SignInMethod];
    const user =
      auth.method === "basic" && presented !== undefined ? digest(userOf(presented)).toString("hex") : undefined;
    const guesser = { address: client, user };
    const refusal = presented === undefined ? undefined : attempts.refusal(guesser, auth);
    // A password may be short enough to be guessed: during guesses, not every one is looked at. A token or key is not, and
    // the right one passes, whatever others behind the same address present.
    if (refusal !== undefined && auth.method === "basic") throw refusal;
    const holder = presented === undefined ? undefined : holderOf(presented);
    const found = holder && findHolder(holder);
    if (holder === undefined || found === undefined) {
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
    return { holder, found };
  }

  /** Checks again credentials that were accepted before; undefined once they are no longer. */
  function stillRight(holder: SessionHolder, client: string | undefined): AdminHolder | undefined {
    const { isListed, findHolder } = currentLock();
    const found = isListed(client) ? findHolder(holder) : undefined;
    return found?.hasScope && !hasExpired(found.expiresAtMs, clock.wallTime) ? found : undefined;
  }

  function bySession(
    id: string,
    session: AdminSession,
    found: AdminHolder,
    client: string | undefined,
    needed: Role,
  ): Administrator {
    const nowMs = clock.now();
    return {
      name: found.name,
      role: found.role,
      method: currentLock().auth.method,
      session: { endsInMs: session.endsMs - nowMs, idleEndsInMs: Math.min(session.idleEndsMs, session.endsMs) - nowMs },
      isStillIn: () => sessions.goesOn(id, session) && mayStill(stillRight(session.holder, client), needed),
    };
  }

  /** Undefined for a request that brings no sign-in, or one that is over. */
  function admitSession(request: Request, client: string | undefined, needed: Role): Administrator | undefined {
    for (const id of sessionIds(request.headers)) {
      const session = sessions.find(id);
      if (session === undefined) continue;
      if (!currentLock().isListed(client)) throw notListed();
      const found = stillRight(session.holder, client);
      if (found === undefined) {
        sessions.close(id);
        continue;
      }
      requireOwnPage(request);
      return bySession(id, session, found, client, needed);
    }
    return undefined;
  }

  /** Serves admin.auth.method `none`, which admits local requests only. */
  function admitLocal({ headers }: Request, { peer, client }: PeerAddresses): Administrator {
    requireLocalRequest(headers, peer);
    if (!currentLock().isListed(client)) throw notListed();
    requireSameOrigin(headers);
    const isStillIn = () => currentLock().auth.method === "none" && currentLock().isListed(client);
    return { name: undefined, role: "admin", method: "none", isStillIn };
  }

  /** Whatever its role is. */
  function identifyCaller(request: Request, addresses: PeerAddresses, needed: Role): Administrator {
    const { auth } = currentLock();
    const { headers } = request;
    const { client } = addresses;
    if (auth.method === "none") return admitLocal(request, addresses);
    const { method } = auth;
    const presented = METHODS[method].presentedIn(headers);
    if (presented === undefined && headers.has("cookie")) {
      const signedIn = admitSession(request, client, needed);
      if (signedIn !== undefined) {
        requireSameOrigin(headers);
        return signedIn;
      }
      if (sessionIds(headers).length > 0) throw unauthorized(SIGNED_OUT, headers, auth);
    }
    const { holder, found } = judge(presented, request, client);
    const { name, role } = found;
    requireSameOrigin(headers);
    const isStillIn = () => currentLock().auth.method === method && mayStill(stillRight(holder, client), needed);
    return { name, role, method, isStillIn };
  }

  return {
    admit(visitor, addresses, needed) {
      visitor.administrator = identifyCaller(visitor.request, addresses, needed);
      requireRoleOf(visitor.administrator, needed);
    },
    receive(request, addresses): Guest {
      const { headers } = request;
      const { client } = addresses;
      requireSameOrigin(headers);

      function open(holder: SessionHolder, found: AdminHolder) {
        for (const earlier of sessionIds(headers)) sessions.close(earlier);
        const { id, session } = sessions.open(holder);
        return { administrator: bySession(id, session, found, client, "viewer"), cookie: sessionCookie(request, id) };
      }

      return {
        signIn(given) {
          const { auth } = currentLock();
          if (auth.method === "none") return { administrator: admitLocal(request, addresses), cookie: undefined };
          const { presentedBy, presentedIn } = METHODS[auth.method];
          const presented = presentedBy(given) ?? presentedIn(headers);
          const { holder, found } = judge(presented, request, client);
          return open(holder, found);
        },
        enter({ name, role }) {
          const { isListed, findHolder, provider } = currentLock();
          const holder = { name, role, provider };
          if (!isListed(client)) throw notListed();
          return open(holder, findHolder(holder) as AdminHolder).cookie;
        },
      };
    },
    signOut(request) {
      for (const id of sessionIds(request.headers)) sessions.close(id);
      return sessionCookie(request, undefined);
    },
  };
}

function mayStill(found: AdminHolder | undefined, needed: Role): boolean {
  return found !== undefined && includesRole(found.role, needed);
}

const SIGNED_OUT = "This sign-in is over: sign in again.";

/** Says where browsers sign in, and by what; without a challenge, so that the browser shows no dialog of its own. */
function unauthorized(message: string, headers: Headers, auth: Auth): GatewayError {
  const isOidc = auth.method === "oidc";
  const details = {
    method: auth.method,
    sign_in: isOidc ? "GET /admin/oidc/sign-in" : "POST /admin/session",
    ...(isOidc && auth.oidc !== undefined && { provider: new URL(auth.oidc.issuer).host }),
  };
  return new GatewayError(ERRORS.invalidApiKey, message, { headers: challengeTo(headers, auth), details });
}

/** A challenge makes a browser ask for a password in a window of its own, over the page that could do so itself. */
function challengeTo(headers: Headers, { method }: Auth): Record<string, string> {
  const mode = headers.get("sec-fetch-mode");
  const isOfPage = mode !== null && mode !== "navigate";
  return isOfPage ? {} : METHODS[method as SignInMethod].challenge;
}

function userOf(presented: string): string {
  return presented.split(":", 1)[0] as string;
}

function notListed(): GatewayError {
  return new GatewayError(ERRORS.forbidden, "This address is not in admin.auth.ip_whitelist.");
}
