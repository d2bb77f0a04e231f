// A connection to a URL whose host may be hostile: all addresses of its name are checked, and the address that was checked is
// the one that is connected to.

import { lookup } from "node:dns/promises";
import { closedHost, judgeHost, literalAddress, mayConnect, type OpenHosts } from "./links.ts";
import { refused } from "./media-types.ts";
import { canonicalAddress } from "./public-address.ts";

/** Addresses of a name. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

interface Sent {
  method?: "GET" | "POST";
  headers: Readonly<Record<string, string>>;
  body?: string;
  signal: AbortSignal;
  /** Certificates that are trusted instead of the system's. */
  ca?: string | undefined;
}

/** Throws a 400 that names the field for a host that may not be connected to, or that is not found. */
export async function checkedAddresses(
  url: URL,
  param: string,
  open: OpenHosts,
  resolve: Resolve,
): Promise<readonly string[]> {
  const judged = judgeHost(url, open);
  if (judged === "closed") throw closedHost(url, param);
  const literal = literalAddress(url);
  const found = literal === undefined ? await resolve(url.hostname).catch(() => []) : [literal];
  if (found.length === 0) throw refused(param, `the host ${url.hostname} was not found.`);
  const addresses = found.map(canonicalAddress);
  // One bad address among good ones is how a name is made to point to both.
  const isFine = (address: string | undefined): address is string =>
    address !== undefined && mayConnect(address, judged, open);
  if (!addresses.every(isFine)) throw closedHost(url, param);
  return addresses;
}

/**
 * Connects to the address, and to nothing that the name may mean by now: the URL holds the address, while the Host
 * header and the name in the certificate are those of the URL that was asked for. Redirects are not followed.
 */
export function connectTo(url: URL, address: string, { method = "GET", headers, body, signal, ca }: Sent) {
  const host = address.includes(":") ? `[${address}]` : address;
  const target = `${url.protocol}//${host}${url.port && `:${url.port}`}${url.pathname}${url.search}`;
  const isLiteral = literalAddress(url) !== undefined;
  // A name in a certificate has no dot at its end.
  const serverName = isLiteral ? undefined : url.hostname.replace(/\.$/, "");
  const tls = { ...(serverName !== undefined && { serverName }), ...(ca !== undefined && { ca }) };
  return fetch(target, {
    method,
    headers: { ...headers, Host: url.host, "User-Agent": "signalbox" },
    ...(body !== undefined && { body }),
    redirect: "manual",
    // A pooled connection belongs to an address, not to the name that it was opened for.
    keepalive: false,
    decompress: false,
    timeout: false,
    signal,
    tls,
  } as RequestInit);
}

export async function systemResolver(hostname: string): Promise<readonly string[]> {
  const found = await lookup(hostname, { all: true });
  return found.map(({ address }) => address);
}
