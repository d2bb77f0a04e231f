// Where an admin request really comes from: another machine, a proxy, or a web page in the operator's browser.

import { isLocalHost, isLoopback, isSameOrigin } from "../access/hosts.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";

/** Each is sent by some proxies, and by no program on its own behalf. */
const PROXY_HEADERS = ["x-forwarded-for", "forwarded", "x-real-ip", "x-forwarded-host", "x-forwarded-proto", "via"];

/** Without authentication: only programs on this machine. Peers on a unix socket are on it and have no address. */
export function requireLocalRequest(headers: Headers, peer: string | undefined): void {
  if (peer !== undefined && !isLoopback(peer)) throw forbidden("answers only clients on this machine");
  // A proxy on this machine hands on what comes from anywhere.
  if (PROXY_HEADERS.some((name) => headers.has(name))) {
    throw forbidden("does not answer requests that a proxy hands on");
  }
  // See access/web-pages.ts for DNS rebinding.
  if (peer !== undefined && !isLocalHost(headers.get("host"))) {
    throw forbidden("answers only requests for localhost or an address such as 127.0.0.1, not for another Host");
  }
}

/** A browser sends what any web page asks it to send, with the user's credentials, and says which page it was. */
export function requireSameOrigin(headers: Headers): void {
  const origin = headers.get("origin");
  if (origin === null) return;
  if (isSameOrigin(origin, headers.get("host"))) return;
  throw new GatewayError(ERRORS.forbidden, "The admin API does not answer requests of web pages from other origins.");
}

/** Methods that change nothing. */
const SAFE_METHODS: readonly string[] = ["GET", "HEAD"];

/**
 * A cookie goes along with whatever any page of the same site sends, one at another port of the same host included: the
 * page has to be the gateway's own, and a change has to say that it is.
 */
export function requireOwnPage({ method, headers }: Request): void {
  const site = headers.get("sec-fetch-site");
  const isForeign = site !== null && site !== "same-origin" && site !== "none";
  const hasNoOrigin = headers.get("origin") === null && !SAFE_METHODS.includes(method);
  if (!isForeign && !hasNoOrigin) return;
  throw new GatewayError(
    ERRORS.forbidden,
    "A sign-in of a browser counts for the gateway's own pages only: changes need their Origin. Programs send the credentials themselves.",
  );
}

function forbidden(what: string): GatewayError {
  return new GatewayError(
    ERRORS.forbidden,
    `The admin API ${what} while no admin authentication is configured (admin.auth.method).`,
  );
}
