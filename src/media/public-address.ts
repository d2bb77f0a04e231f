// Which hosts lie on the public internet: the rules against requests that are tricked into the operator's own network.

import ipaddr from "ipaddr.js";
import { parseAddressRange } from "../config/values/address-range.ts";

/** The address in one spelling, IPv4-mapped IPv6 as IPv4; undefined when the text is no address (zones included). */
export function canonicalAddress(text: string): string | undefined {
  return parse(text)?.toString();
}

/** True if the address can be reached from everywhere; an address that is not known to be public cannot. */
export function isPublicAddress(text: string): boolean {
  const address = parse(text);
  if (address === undefined) return false;
  if (address instanceof ipaddr.IPv4) return isPublicIPv4(address);
  const embedded = nat64Target(address);
  if (embedded !== undefined) return isPublicIPv4(embedded);
  return isGlobalUnicast(address) && address.range() === "unicast" && !isIsatap(address);
}

/** Azure's host agent answers every machine of that cloud at an address that looks public. */
const CLOUD_HOST = "168.63.129.16";

function isPublicIPv4(address: ipaddr.IPv4): boolean {
  return address.range() === "unicast" && address.toString() !== CLOUD_HOST;
}

/**
 * Names that mean this machine or this network wherever they are asked for. The name is in the spelling of URL.hostname;
 * dots at its end do not count.
 */
export function isLocalName(hostname: string): boolean {
  const name = hostname.toLowerCase().replace(/\.+$/, "");
  // A name without a dot is completed from the machine's own search list.
  if (!name.includes(".")) return true;
  return LOCAL_SUFFIXES.some((suffix) => name.endsWith(suffix));
}

/** RFC 6761, 6762, 8375, the private-use name of ICANN, and what routers and clusters use without one. */
const LOCAL_SUFFIXES = [
  ".localhost",
  ".localdomain",
  ".localdomain4",
  ".localdomain6",
  ".local",
  ".internal",
  ".intranet",
  ".private",
  ".corp",
  ".home",
  ".lan",
  ".home.arpa",
];

function parse(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  return text.includes("/") ? undefined : parseAddressRange(text)?.address;
}

/** The well-known prefix 64:ff9b::/96 (RFC 6052) leads to the IPv4 address in its last 32 bits. */
function nat64Target(address: ipaddr.IPv6): ipaddr.IPv4 | undefined {
  const [first, second, ...rest] = address.parts;
  if (first !== 0x64 || second !== 0xff9b || rest.slice(0, 4).some((part) => part !== 0)) return undefined;
  return new ipaddr.IPv4(address.toByteArray().slice(12));
}

/** 2000::/3 is all that was ever given out (IANA, "Internet Protocol Version 6 Address Space"). */
function isGlobalUnicast(address: ipaddr.IPv6): boolean {
  return ((address.parts[0] ?? 0) & 0xe000) === 0x2000;
}

/** RFC 5214: an interface identifier that holds an IPv4 address behind a tunnel. */
function isIsatap(address: ipaddr.IPv6): boolean {
  const [, , , , fifth = 0, sixth] = address.parts;
  return (fifth & 0xfdff) === 0 && sixth === 0x5efe;
}
