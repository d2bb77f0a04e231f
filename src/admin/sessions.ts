// Sign-ins of browsers: who they belong to, by the digest of an id that only the browser has. Bounded in number and time,
// and gone with the process.

import type { Role } from "../config/values/roles.ts";
import { BoundedMap } from "../lib/bounded-map.ts";

/** A person who has signed in at the OpenID provider. */
interface Person {
  readonly name: string;
  readonly role: Role;
}

/**
 * By what a sign-in was opened, which ends when that is not accepted any more: the digest of credentials, or a person, with
 * the digest of the provider's settings.
 */
export type SessionHolder =
  | { readonly credential: Buffer }
  /** The digest of a secret of the key store. */
  | { readonly storedSecret: Buffer }
  | (Person & { readonly provider: string });

export interface AdminSession {
  readonly holder: SessionHolder;
  /** Clock milliseconds. */
  readonly endsMs: number;
  idleEndsMs: number;
}

/** Those that are open at the same time; with more of them the one that was quiet for longest ends. */
const MAX_SESSIONS = 1_000;
const MAX_BYTES = 2 * 1024 * 1024;
const SESSION_BYTES = 1_024;

/** However busy it is, and without a request. */
export const SESSION_MS = 12 * 3_600_000;
export const IDLE_SESSION_MS = 3_600_000;

const ID_BYTES = 32;
const ID = /^[\w-]{43}$/;

/** Ids that one request may bring: of several gateways behind one name, or of a page that tries to push one in. */
const MAX_COOKIES = 4;

export function createSessions(now: () => number) {
  const sessions = new BoundedMap<AdminSession>({
    maxEntries: MAX_SESSIONS,
    maxBytes: MAX_BYTES,
    ttlMs: SESSION_MS,
    now,
  });

  return {
    get size(): number {
      return sessions.size;
    },
    /** Returns its id, which is kept nowhere. */
    open(holder: SessionHolder): { id: string; session: AdminSession } {
      const id = newBrowserId();
      const nowMs = now();
      const session = { holder, endsMs: nowMs + SESSION_MS, idleEndsMs: nowMs + IDLE_SESSION_MS };
      sessions.set(digestOf(id), session, SESSION_BYTES);
      return { id, session };
    },
    /** The one that an id opens; its idle time begins again. */
    find(id: string): AdminSession | undefined {
      if (!isBrowserId(id)) return undefined;
      const session = sessions.get(digestOf(id));
      if (session === undefined) return undefined;
      if (!renew(session, now())) {
        sessions.delete(digestOf(id));
        return undefined;
      }
      return session;
    },
    /** False for a session that has ended; else its idle time begins again. */
    goesOn: (id: string, session: AdminSession): boolean =>
      sessions.get(digestOf(id)) === session && renew(session, now()),
    keepOnly: (goesOn: (holder: SessionHolder) => boolean): void =>
      sessions.deleteWhere(({ holder }) => !goesOn(holder)),
    close: (id: string): void => sessions.delete(digestOf(id)),
  };
}

function renew(session: AdminSession, nowMs: number): boolean {
  if (nowMs >= Math.min(session.endsMs, session.idleEndsMs)) return false;
  session.idleEndsMs = nowMs + IDLE_SESSION_MS;
  return true;
}

/** What only the browser has. */
export function newBrowserId(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(ID_BYTES))).toString("base64url");
}

export const isBrowserId = (text: string): boolean => ID.test(text);

/** An id has 256 random bits: its digest needs no salt and no slowness. */
export function digestOf(id: string): string {
  return new Bun.CryptoHasher("sha256", id).digest("hex");
}

const SESSION_COOKIE = "signalbox_session";

/** Cookies are shared by all ports of a host: each gateway there has one of its own. */
export function cookieName(base: string, host: string | null): string {
  const port = /:(\d{1,5})$/.exec(host ?? "")?.[1];
  return port === undefined ? base : `${base}_${port}`;
}

export const sessionIds = (headers: Headers): string[] => cookieValues(headers, SESSION_COOKIE);

export function cookieValues(headers: Headers, base: string): string[] {
  const cookies = headers.get("cookie");
  if (cookies === null) return [];
  const name = cookieName(base, headers.get("host"));
  return cookies
    .split(";")
    .map((cookie) => cookie.trim().split("=", 2) as [string, string?])
    .filter(([key]) => key === name)
    .map(([, id = ""]) => id)
    .slice(0, MAX_COOKIES);
}

/** @param id - undefined: the browser is to forget it */
export function sessionCookie(request: Request, id: string | undefined): string {
  const life = id === undefined ? 0 : SESSION_MS / 1000;
  const name = cookieName(SESSION_COOKIE, request.headers.get("host"));
  const secure = cameEncrypted(request) ? "; Secure" : "";
  return `${name}=${id ?? ""}; Path=/admin; Max-Age=${life}; HttpOnly; SameSite=Strict${secure}`;
}

/**
 * True if the browser's own connection is encrypted, as the first proxy or the Origin says, whatever comes behind a proxy. A
 * false claim only makes the browser keep its cookie more strictly.
 */
export function cameEncrypted({ url, headers }: Request): boolean {
  const schemes = [url, headers.get("origin"), headers.get("x-forwarded-proto")];
  return schemes.some((scheme) => scheme !== null && /^https(?:$|[:,\s])/i.test(scheme));
}
