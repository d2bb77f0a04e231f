// Which sites may be found. Services are asked to keep to them, and whatever they answer is filtered here again.

import type { SearchWish } from "./service.ts";

type DomainWish = Pick<SearchWish, "allowedDomains" | "blockedDomains">;

interface SiteRule {
  host: string;
  /** Empty for the whole site. */
  path: string;
}

/** A rule names a site with its subdomains, or a part of one: "example.com", "example.com/blog". */
function parseRule(domain: string): SiteRule | undefined {
  const bare = domain
    .trim()
    .replace(/^https?:\/\//i, "")
    .replace(/^\*\./, "");
  const slash = bare.indexOf("/");
  const host = (slash < 0 ? bare : bare.slice(0, slash)).toLowerCase().replace(/\.$/, "");
  if (host === "") return undefined;
  const path = slash < 0 ? "" : bare.slice(slash).replace(/\*.*$/, "");
  return { host, path: path === "/" ? "" : path };
}

function matches({ hostname, pathname }: URL, { host, path }: SiteRule): boolean {
  const name = hostname.replace(/\.$/, "");
  if (name !== host && !name.endsWith(`.${host}`)) return false;
  if (path === "" || path.endsWith("/")) return pathname.startsWith(path);
  return pathname === path || pathname.startsWith(`${path}/`);
}

function rulesOf(domains: readonly string[] | undefined): SiteRule[] {
  return (domains ?? []).map(parseRule).filter((rule) => rule !== undefined);
}

/** Tells of an address whether it may be shown. */
export function siteFilter({ allowedDomains, blockedDomains }: DomainWish): (url: string) => boolean {
  const allowed = rulesOf(allowedDomains);
  const blocked = rulesOf(blockedDomains);
  const isOpen = allowedDomains === undefined || allowedDomains.length === 0;
  return (address) => {
    const url = URL.parse(address);
    if (url === null || blocked.some((rule) => matches(url, rule))) return false;
    return isOpen || allowed.some((rule) => matches(url, rule));
  };
}

/** The text that may follow "site:" without being read as another operator. */
const SITE = /^[a-z0-9.-]+(?:\/[a-z0-9._~/-]*)?$/i;

/** The query with the site: operators of search engines, as many as its limits allow. */
export function withSiteOperators(query: string, wish: DomainWish, maxCharacters: number, maxWords: number): string {
  const sites = (domains: readonly string[] | undefined) =>
    rulesOf(domains)
      .map(({ host, path }) => host + path)
      .filter((site) => SITE.test(site));
  let left = maxCharacters - query.length - 3; // the space and the parentheses
  let words = maxWords - wordCount(query);
  function fitting(terms: readonly string[], joint: string): string[] {
    const taken: string[] = [];
    for (const term of terms) {
      const cost = taken.length === 0 ? 1 : 2; // OR counts as a word
      if (term.length + joint.length > left || cost > words) break;
      left -= term.length + joint.length;
      words -= cost;
      taken.push(term);
    }
    return taken;
  }
  const allowed = fitting(
    sites(wish.allowedDomains).map((site) => `site:${site}`),
    " OR ",
  );
  const blocked = fitting(
    sites(wish.blockedDomains).map((site) => `-site:${site}`),
    " ",
  );
  const within = allowed.length > 1 ? `(${allowed.join(" OR ")})` : allowed.join("");
  return [query, within, ...blocked].filter((term) => term !== "").join(" ");
}

export function wordCount(text: string): number {
  return text.split(/\s+/).filter((word) => word !== "").length;
}
