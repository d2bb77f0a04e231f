// Brave Search: GET https://api.search.brave.com/res/v1/web/search, key in X-Subscription-Token
// (Brave Search API documentation, "Web Search API": query parameters, request headers, response objects).

import { isObject } from "../lib/json.ts";
import { withSiteOperators } from "./domains.ts";
import { countryCode, type SearchService, type UserLocation } from "./service.ts";

const MAX_CHARACTERS = 400;
const MAX_WORDS = 50;
const MAX_COUNT = 20;

export const brave: SearchService = {
  defaultUrl: "https://api.search.brave.com",
  limits: { characters: MAX_CHARACTERS, words: MAX_WORDS },
  request(query, wish, apiKey) {
    const parameters = new URLSearchParams({
      q: withSiteOperators(query, wish, MAX_CHARACTERS, MAX_WORDS),
      count: String(Math.min(wish.count, MAX_COUNT)),
      result_filter: "web",
      text_decorations: "false",
    });
    return {
      path: `/res/v1/web/search?${parameters}`,
      headers: { "x-subscription-token": apiKey, ...locationHeaders(wish.location) },
    };
  },
  results({ type, web }) {
    // A query that finds nothing is answered without `web`.
    if (web === undefined || web === null) return type === "search" ? [] : undefined;
    return isObject(web) ? web.results : undefined;
  },
  fields: ({ url, title, description, age, page_age }) => ({ url, title, snippet: description, age: age ?? page_age }),
};

/** The place goes into headers: the parameter `country` refuses countries that Brave has no index of. */
function locationHeaders(location: UserLocation | undefined): Record<string, string> {
  const headers: Record<string, string> = {};
  const named: [name: string, value: string | undefined][] = [
    ["x-loc-city", location?.city],
    ["x-loc-state-name", location?.region],
    ["x-loc-country", countryCode(location)],
    ["x-loc-timezone", location?.timezone],
  ];
  for (const [name, value] of named) {
    // A name that a header cannot hold is only a hint that is left out.
    if (value !== undefined && /^[\x20-\x7e]{1,100}$/.test(value)) headers[name] = value;
  }
  return headers;
}
