// IP addresses and CIDR ranges as operators write them.

import ipaddr from "ipaddr.js";
import { z } from "zod";

interface AddressRange {
  address: ipaddr.IPv4 | ipaddr.IPv6;
  prefixLength: number;
}

/**
 * An address or a CIDR range; undefined when the text is neither. Strict, because ipaddr.js reads "10" as 0.0.0.10 and
 * "010.0.0.1" as octal. Ranges of IPv4-mapped addresses (::ffff:10.0.0.0/104) become ranges of IPv4.
 */
export function parseAddressRange(text: string): AddressRange | undefined {
  const [addressText = "", prefixText, ...rest] = text.split("/");
  if (rest.length > 0 || (prefixText !== undefined && !/^(0|[1-9]\d{0,2})$/.test(prefixText))) return undefined;
  if (ipaddr.IPv4.isValidFourPartDecimal(addressText)) {
    const prefixLength = prefixText === undefined ? 32 : Number(prefixText);
    return prefixLength > 32 ? undefined : { address: ipaddr.IPv4.parse(addressText), prefixLength };
  }
  // A zone (fe80::1%eth0) names an interface of one machine and is never part of a range.
  if (addressText.includes("%") || !ipaddr.IPv6.isValid(addressText)) return undefined;
  // The old form ::192.0.2.7 is no IPv4-mapped address, but ipaddr.js takes it for one.
  if (/^::\d+\./.test(addressText)) return undefined;
  const address = ipaddr.IPv6.parse(addressText);
  const prefixLength = prefixText === undefined ? 128 : Number(prefixText);
  if (prefixLength > 128) return undefined;
  if (!address.isIPv4MappedAddress()) return { address, prefixLength };
  // Fewer bits would mean some IPv4 addresses and some IPv6 ones that no host has.
  return prefixLength < 96 ? undefined : { address: address.toIPv4Address(), prefixLength: prefixLength - 96 };
}

const EXPECTED_RANGE = 'expected an IP address or a CIDR range, such as "192.0.2.7", "10.0.0.0/8" or "2001:db8::/32"';

/** An IP address or a CIDR range; bits behind the prefix do not count, so 10.0.0.1/8 is 10.0.0.0/8. */
export const addressRange = () =>
  z
    .string({ error: EXPECTED_RANGE })
    .refine((text) => parseAddressRange(text) !== undefined, { message: EXPECTED_RANGE });
