// Lists of addresses and CIDR ranges, compiled once and asked for every request; and the one spelling of an address.

import ipaddr from "ipaddr.js";
import { parseAddressRange } from "../config/values/address-range.ts";

export interface AddressList {
  readonly isEmpty: boolean;
  /** The address in any spelling; text that is no address is in no list. */
  contains(address: string): boolean;
}

/** Entries are valid: the configuration has checked them. */
export function createAddressList(entries: readonly string[]): AddressList {
  const single = new Set<string>();
  const ranges4: { base: number; mask: number }[] = [];
  const ranges6: { address: ipaddr.IPv6; prefixLength: number }[] = [];
  for (const entry of entries) {
    const range = parseAddressRange(entry);
    if (range === undefined) throw new Error("an address list has an entry that is neither an address nor a range");
    const { address, prefixLength } = range;
    if (address instanceof ipaddr.IPv4) {
      // A shift by 32 bits would be a shift by none.
      const mask = prefixLength === 0 ? 0 : (0xffffffff << (32 - prefixLength)) >>> 0;
      if (prefixLength === 32) single.add(address.toString());
      else ranges4.push({ base: (toNumber(address.octets) & mask) >>> 0, mask });
    } else if (prefixLength === 128) single.add(address.toString());
    else ranges6.push({ address, prefixLength });
  }

  return {
    isEmpty: entries.length === 0,
    contains(text) {
      if (entries.length === 0) return false;
      const address = normalizeAddress(text);
      if (address === undefined) return false;
      if (single.has(address)) return true;
      if (!address.includes(":")) {
        if (ranges4.length === 0) return false;
        const value = toNumber(address.split(".").map(Number));
        return ranges4.some(({ base, mask }) => (value & mask) >>> 0 === base);
      }
      if (ranges6.length === 0) return false;
      const parsed = ipaddr.IPv6.parse(address);
      return ranges6.some((range) => parsed.match(range.address, range.prefixLength));
    },
  };
}

/**
 * The one spelling of an address: IPv4-mapped IPv6 as IPv4, other IPv6 in short form without a zone; undefined for
 * anything else. Strict, as parseAddressRange is.
 */
export function normalizeAddress(text: string): string | undefined {
  if (!text.includes(":")) return ipaddr.IPv4.isValidFourPartDecimal(text) ? text : undefined;
  // A listener for both families gives every IPv4 peer in this form: the usual case takes the short way.
  if (text.startsWith("::ffff:") && ipaddr.IPv4.isValidFourPartDecimal(text.slice(7))) return text.slice(7);
  const zone = text.indexOf("%");
  const range = parseAddressRange(zone < 0 ? text : text.slice(0, zone));
  return range === undefined || text.includes("/") ? undefined : range.address.toString();
}

function toNumber(octets: readonly number[]): number {
  let value = 0;
  for (const octet of octets) value = value * 256 + octet;
  return value;
}
