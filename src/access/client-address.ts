// Whose request it is by address: the peer, or, behind trusted proxies, the client that they name.

import ipaddr from "ipaddr.js";
import { type AddressList, createAddressList, normalizeAddress } from "./address-list.ts";

/** Peers on a unix socket have no address; as an entry of trusted_proxies it stands for all of them. */
const UNIX_PEER = "unix:";

/** Longer headers and chains are no honest chain of proxies; what lies beyond is not looked at. */
const LONGEST_HEADER = 4096;
const MOST_HOPS = 32;
/** Addresses of peers that are kept in their one spelling. */
const MOST_SPELLINGS = 10_000;

export interface ClientAddressReader {
  /**
   * The client's address in its one spelling; undefined for a client on a unix socket. `forwardedFor` is the value of
   * X-Forwarded-For, several headers joined with commas in their order. The header Forwarded is not read: a proxy that
   * sets only one of the two hands on the other as the client wrote it.
   */
  read(peerAddress: string | undefined, forwardedFor: string | null): string | undefined;
}

/**
 * `trustedProxies` holds addresses, CIDR ranges and `unix:`. `ignored` hears of every X-Forwarded-For of a peer that is
 * not among them.
 */
export function createClientAddressReader(
  trustedProxies: readonly string[],
  ignored: (peer: string | undefined) => void = () => {},
): ClientAddressReader {
  const trusted: AddressList = createAddressList(trustedProxies.filter((entry) => entry !== UNIX_PEER));
  const trustsUnixPeers = trustedProxies.includes(UNIX_PEER);
  // Bringing an address into its one spelling costs more than everything else here; most requests come from few peers.
  const spellings = new Map<string, string | undefined>();

  function spellingOf(peerAddress: string): string | undefined {
    const known = spellings.get(peerAddress);
    if (known !== undefined) return known;
    if (spellings.size >= MOST_SPELLINGS) spellings.clear();
    const spelling = normalizeAddress(peerAddress);
    spellings.set(peerAddress, spelling);
    return spelling;
  }

  return {
    read(peerAddress, forwardedFor) {
      const peer = peerAddress === undefined || peerAddress === "" ? undefined : spellingOf(peerAddress);
      if (forwardedFor === null) return peer;
      const isTrusted = peer === undefined ? trustsUnixPeers : trusted.contains(peer);
      if (isTrusted) return originOf(forwardedFor, peer, trusted);
      ignored(peer);
      return peer;
    },
  };
}

/**
 * Each proxy adds the address of its peer on the right, so the header is true only from the right up to the first
 * address that is not a trusted proxy: that is the client, and all to its left is what the client wrote. At an entry
 * that is no address the walk ends with the last proxy that was believed.
 */
function originOf(header: string, peer: string | undefined, trusted: AddressList): string | undefined {
  let origin = peer;
  let end = header.length;
  for (let hop = 0; hop < MOST_HOPS && end > 0; hop++) {
    const comma = header.lastIndexOf(",", end - 1);
    if (header.length - comma > LONGEST_HEADER) return origin;
    const entry = header.slice(comma + 1, end).trim();
    end = comma;
    if (entry === "") continue; // empty elements of a list do not count (RFC 9110, section 5.6.1)
    const address = hostOf(entry);
    if (address === undefined) return origin;
    origin = address;
    if (!trusted.contains(address)) return origin;
  }
  return origin;
}

/** Some proxies add the port: 192.0.2.7:4711, [2001:db8::1]:4711. */
function hostOf(entry: string): string | undefined {
  if (entry.length > 64) return undefined;
  const withPort = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(entry) ?? /^([\d.]+):\d{1,5}$/.exec(entry);
  return normalizeAddress(withPort?.[1] ?? entry);
}

/** IPv6 addresses that stand for one machine each: local networks, and IPv4 addresses in translation. */
const COUNTED_ALONE: ReadonlySet<string> = new Set(["loopback", "linkLocal", "uniqueLocal", "rfc6145", "rfc6052"]);

/**
 * The group of addresses that limits count as one client. An IPv6 client on the internet has a whole /64 and may send from any
 * address in it, so a limit per address would be none. In local networks a /64 holds all machines: these are counted one by
 * one.
 */
export function clientGroup(address: string): string {
  if (!address.includes(":")) return address;
  const parsed = ipaddr.IPv6.parse(address);
  if (COUNTED_ALONE.has(parsed.range())) return address;
  return `${new ipaddr.IPv6([...parsed.parts.slice(0, 4), 0, 0, 0, 0]).toString()}/64`;
}

/** All clients of a proxy that is not named count as one, which its operator should know; one line is enough. */
export function warnOfUntrustedProxy(log: {
  warn(fields: object, message: string): void;
}): (peer: string | undefined) => void {
  let hasWarned = false;
  return (peer) => {
    if (hasWarned) return;
    hasWarned = true;
    const message =
      "X-Forwarded-For of a peer that server.trusted_proxies does not name is ignored: its clients count as one";
    log.warn({ address: peer }, message);
  };
}
