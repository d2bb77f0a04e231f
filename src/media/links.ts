// Which addresses a link in a request may have. A link that is only handed on is judged by its text alone: its name is not
// looked up, and the server that fetches it may get another address anyway.

import { parseAddressRange } from "../config/values/address-range.ts";
import { compileGlob } from "../lib/glob.ts";
import { refused } from "./media-types.ts";
import { canonicalAddress, isLocalName, isPublicAddress } from "./public-address.ts";

/** Hosts that the operator has opened though they are not public; by default none. */
export interface OpenHosts {
  /** In the spelling of canonicalAddress. */
  allowAddress?: (address: string) => boolean;
  /** In the spelling of URL.hostname. */
  allowName?: (hostname: string) => boolean;
}

const MAX_URL_LENGTH = 8192;
/** Below it live protocols that an HTTP request must not be spoken to: mail, databases of a neighbour, and the like. */
const FIRST_UNPRIVILEGED_PORT = 1024;

/**
 * The host as all parsers read it. Signs that parsers disagree on do not pass: what one takes for a name and another for a
 * path or for credentials would be checked as one host and asked for as another.
 */
const PLAIN_START = /^https?:\/\/[^\s/?#\\@]+(?:[/?#]|$)/i;

/** server.allowed_link_hosts; each entry is an address, a range or a pattern of names. */
export function openHosts(entries: readonly string[]): OpenHosts {
  if (entries.length === 0) return {};
  const ranges = entries.flatMap((entry) => parseAddressRange(entry) ?? []);
  const names = entries
    .filter((entry) => parseAddressRange(entry) === undefined)
    .map((entry) => compileGlob(entry.toLowerCase()));
  return {
    allowAddress(text) {
      const address = parseAddressRange(text)?.address;
      return address !== undefined && ranges.some((range) => includes(range, address));
    },
    allowName(hostname) {
      const name = hostname.toLowerCase().replace(/\.+$/, "");
      return names.some((matches) => matches(name));
    },
  };
}

type AddressBlock = NonNullable<ReturnType<typeof parseAddressRange>>;

function includes({ address: start, prefixLength }: AddressBlock, address: AddressBlock["address"]): boolean {
  return start.kind() === address.kind() && address.match(start, prefixLength);
}

/** Throws a 400 that names the field. */
export function parseLink(text: string, param: string): URL {
  const url = text.length > MAX_URL_LENGTH ? null : URL.parse(text);
  if (url === null) throw refused(param, "expected an http or https URL.");
  checkUrl(url, param);
  return url;
}

export function redirectTarget(location: string | null, from: URL, param: string): URL {
  const url = location === null || location.length > MAX_URL_LENGTH ? null : URL.parse(location, from.href);
  if (url === null) throw refused(param, `${from.host} answered a redirect without a target.`);
  checkUrl(url, param);
  if (from.protocol === "https:" && url.protocol === "http:") {
    throw refused(param, `${from.host} redirects from https to http, which is not followed.`);
  }
  return url;
}

function checkUrl(url: URL, param: string): void {
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    throw refused(param, `expected an http or https URL, got ${JSON.stringify(url.protocol.slice(0, 20))}.`);
  }
  if (url.username !== "" || url.password !== "") throw refused(param, "credentials in a URL are not accepted.");
  if (url.port !== "" && Number(url.port) < FIRST_UNPRIVILEGED_PORT && url.port !== "80" && url.port !== "443") {
    throw refused(param, `the port ${url.port} is not accepted.`);
  }
}

/** The address that the URL itself holds, in its one spelling; undefined where it holds a name. */
export function literalAddress({ hostname }: URL): string | undefined {
  return canonicalAddress(hostname.replace(/^\[|\]$/g, ""));
}

/**
 * The verdict before the addresses of a name are looked up: any address would do, only public ones, only opened ones, or none.
 */
export function judgeHost(
  url: URL,
  { allowAddress, allowName }: OpenHosts,
): "open" | "public-only" | "opened-only" | "closed" {
  const literal = literalAddress(url);
  if (literal !== undefined) {
    return isPublicAddress(literal) || allowAddress?.(literal) === true ? "open" : "closed";
  }
  // An address in brackets that has no canonical form is one of the forms that hide another address.
  if (url.hostname.startsWith("[")) return "closed";
  if (allowName?.(url.hostname) === true) return "open";
  if (!isLocalName(url.hostname)) return "public-only";
  // Without addresses of the operator's no local name is even looked up.
  return allowAddress === undefined ? "closed" : "opened-only";
}

/** True if the gateway may connect to an address of a name. */
export function mayConnect(
  address: string,
  judged: ReturnType<typeof judgeHost>,
  { allowAddress }: OpenHosts,
): boolean {
  if (judged === "open" || (judged === "public-only" && isPublicAddress(address))) return true;
  return judged !== "closed" && allowAddress?.(address) === true;
}

export function closedHost(url: URL, param: string): Error {
  return refused(param, `${url.host} leads to a local, private or reserved address, which is not fetched.`);
}

/** Throws a 400 that names the field for a link that may not be handed on. */
export function checkLink(text: string, param: string, open: OpenHosts): void {
  const url = parseLink(text, param);
  const judged = judgeHost(url, open);
  if (judged === "closed" || judged === "opened-only") throw closedHost(url, param);
  if (!PLAIN_START.test(text)) throw refused(param, "expected a URL that begins with http:// or https:// and a host.");
}
