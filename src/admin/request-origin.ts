// Where an admin request really comes from: another machine, a proxy, or a web page in the operator's browser.

import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";

/** Without authentication: only programs on this machine. Peers on a unix socket are on it and have no address. */
export function requireLocalRequest(headers: Headers, peer: string | undefined): void {
  if (peer !== undefined && !isLoopback(peer)) throw forbidden("answers only clients on this machine");
  // A proxy on this machine hands on what comes from anywhere.
  if (headers.has("x-forwarded-for") || headers.has("forwarded")) {
    throw forbidden("does not answer requests that a proxy hands on");
  }
  // The name of a web page can be made to lead to this machine (DNS rebinding); its requests still carry that name.
  if (peer !== undefined && !isLocalHost(headers.get("host"))) {
    throw forbidden("answers only requests for localhost or an address such as 127.0.0.1, not for another Host");
  }
}

/** A browser sends what any web page asks it to send, with the user's credentials, and says which page it was. */
export function requireSameOrigin(headers: Headers): void {
  const origin = headers.get("origin");
  if (origin === null) return;
  if (URL.canParse(origin) && new URL(origin).host === headers.get("host")) return;
  throw new GatewayError(ERRORS.forbidden, "The admin API does not answer requests of web pages from other origins.");
}

export function isLoopback(address: string): boolean {
  return /^(::ffff:)?127\.\d+\.\d+\.\d+$/i.test(address) || address === "::1";
}

function isLocalHost(host: string | null): boolean {
  if (host === null || host === "") return true;
  const name = host.replace(/:\d*$/, "").toLowerCase();
  return name === "localhost" || name.endsWith(".localhost") || isLoopback(name.replace(/^\[|\]$/g, ""));
}

function forbidden(what: string): GatewayError {
  return new GatewayError(
    ERRORS.forbidden,
    `The admin API ${what} while no admin authentication is configured (admin.auth.method).`,
  );
}
