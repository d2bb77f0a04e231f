// The credentials that admin.auth accepts: where each method looks for them, and who presents them.

import { createAddressList } from "../access/address-list.ts";
import { acceptedSecrets } from "../access/api-keys.ts";
import type { Caller } from "../access/caller.ts";
import { basicCredential } from "../access/credentials.ts";
import type { KeyIdentity } from "../access/key-identity.ts";
import type { StoredKeys } from "../access/stored-keys.ts";
import type { Settings } from "../config/sections/registry.ts";
import type { Role } from "../config/values/roles.ts";
import type { PresentedCredentials } from "../server/endpoint.ts";
import type { SessionHolder } from "./sessions.ts";

export type Auth = Settings["admin"]["auth"];
type Keys = Settings["api_keys"]["keys"];

/** Who is behind credentials or a sign-in. */
export interface AdminHolder {
  name: string;
  role: Role;
  hasScope: boolean;
  expiresAtMs: number;
}

interface AcceptedCredential extends AdminHolder {
  text: string;
}

/** A unix socket is a file of this machine: its peers count as this address in ip_whitelist. */
const UNIX_PEER_ADDRESS = "127.0.0.1";

export type AdminLock = ReturnType<typeof createLock>;

interface LockParts {
  identify: KeyIdentity;
  storedKeys: Pick<StoredKeys, "accept" | "acceptDigest" | "digestOf" | "find">;
  /** For comparisons. */
  digest(text: string): Buffer;
}

export function createLock(auth: Auth, keys: Keys, { identify, storedKeys, digest }: LockParts) {
  const whitelist = createAddressList(auth.ip_whitelist);
  const accepted = auth.method === "none" ? [] : METHODS[auth.method].accepted(auth, keys, identify);
  const digested = accepted.map((credential) => ({ credential, digest: digest(credential.text) }));
  /** The same as long as the provider and its roles are; people who sign in there hold no credential. */
  const provider = digest(JSON.stringify([auth.method, auth.oidc])).toString("hex");

  function find(hashed: Buffer): AdminHolder | undefined {
    let found: AdminHolder | undefined;
    // All of them, whichever is the right one: how long it takes tells nothing.
    for (const entry of digested) if (crypto.timingSafeEqual(hashed, entry.digest)) found = entry.credential;
    return found;
  }

  const takesKeys = auth.method === "api_key";

  function ofStoredKey(caller: Caller | undefined): AdminHolder | undefined {
    if (caller === undefined) return undefined;
    const role = storedKeys.find(caller.keyId)?.rights.admin_role ?? "admin";
    return { name: caller.keyId, role, hasScope: caller.scopes.has("admin"), expiresAtMs: caller.expiresAtMs };
  }

  return {
    auth,
    keys,
    provider,
    isListed: (address: string | undefined) => whitelist.isEmpty || whitelist.contains(address ?? UNIX_PEER_ADDRESS),
    /** By what its credentials are known from then on; undefined for wrong ones. */
    holderOf(presented: string): SessionHolder | undefined {
      const credential = digest(presented);
      if (find(credential) !== undefined) return { credential };
      if (!takesKeys || storedKeys.accept(presented) === undefined) return undefined;
      return { storedSecret: storedKeys.digestOf(presented) };
    },
    findHolder(holder: SessionHolder): AdminHolder | undefined {
      if ("credential" in holder) return find(holder.credential);
      if ("storedSecret" in holder) {
        return takesKeys ? ofStoredKey(storedKeys.acceptDigest(holder.storedSecret)) : undefined;
      }
      return holder.provider === provider ? { ...LASTING, ...holder } : undefined;
    },
    /** Tells which sign-ins go on under this lock. */
    survivors(): (holder: SessionHolder) => boolean {
      const known = new Set(digested.map((entry) => entry.digest.toString("hex")));
      return (holder) => {
        if ("storedSecret" in holder) return takesKeys;
        return "credential" in holder ? known.has(holder.credential.toString("hex")) : holder.provider === provider;
      };
    },
  };
}

const LASTING = { hasScope: true, expiresAtMs: Number.POSITIVE_INFINITY };

/** For programs, under every method but basic: the token without a name, and those with one. */
function tokensOf({ token, tokens }: Auth): AcceptedCredential[] {
  const named = tokens.map((each) => ({ ...LASTING, text: each.token, name: each.name, role: each.role }));
  if (token === undefined) return named;
  return [{ ...LASTING, text: token, name: "admin token", role: "admin" }, ...named];
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
  accepted(auth: Auth, keys: Keys, identify: KeyIdentity): AcceptedCredential[];
}

export type SignInMethod = Exclude<Auth["method"], "none">;

const BEARER: AuthMethod = {
  how: "'Authorization: Bearer <token>'",
  challenge: { "WWW-Authenticate": 'Bearer realm="Signalbox admin API"' },
  presentedIn: (headers) => /^bearer\s+(\S.*?)\s*$/i.exec(headers.get("authorization") ?? "")?.[1],
  presentedBy: ({ token }) => token,
  accepted: tokensOf,
};

export const METHODS: Readonly<Record<SignInMethod, AuthMethod>> = {
  bearer_token: BEARER,
  basic: {
    how: "'Authorization: Basic <username and password>'",
    challenge: { "WWW-Authenticate": 'Basic realm="Signalbox admin API", charset="UTF-8"' },
    presentedIn: basicCredential,
    presentedBy: ({ username, password }) =>
      username === undefined || password === undefined ? undefined : `${username}:${password}`,
    accepted({ username, password, users }) {
      const named = users.map((user) => ({
        ...LASTING,
        text: `${user.username}:${user.password}`,
        name: user.username,
        role: user.role,
      }));
      if (username === undefined || password === undefined) return named;
      return [{ ...LASTING, text: `${username}:${password}`, name: username, role: "admin" }, ...named];
    },
  },
  api_key: {
    how: "'X-API-Key: <key>'",
    challenge: {},
    presentedIn: (headers) => headers.get("x-api-key") ?? undefined,
    presentedBy: ({ key, token }) => key ?? token,
    accepted(auth, keys, identify) {
      const ofKeys = keys.flatMap((key) =>
        acceptedSecrets(key, identify).map(({ secret, caller }) => ({
          text: secret,
          name: caller.keyId,
          role: key.admin_role ?? ("admin" as const),
          hasScope: caller.scopes.has("admin"),
          expiresAtMs: caller.expiresAtMs,
        })),
      );
      return [...ofKeys, ...tokensOf(auth)];
    },
  },
  oidc: BEARER,
};
