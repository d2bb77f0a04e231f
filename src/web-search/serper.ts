// serper.dev: Google's results. POST https://google.serper.dev/search, key in X-API-KEY
// (OpenAPI description of the "Serper Google Search API", schemas SearchRequest and SearchResponse).

import { isObject } from "../lib/json.ts";
import { withSiteOperators } from "./domains.ts";
import { countryCode, type SearchService, toHit } from "./service.ts";

/** Google reads no more than 32 words and about 2,000 characters of a query. */
const MAX_CHARACTERS = 2_048;
const MAX_WORDS = 32;

export const serper: SearchService = {
  name: "serper",
  defaultUrl: "https://google.serper.dev",
  limits: { characters: MAX_CHARACTERS },
  request(query, wish, apiKey) {
    const country = countryCode(wish.location);
    return {
      method: "POST",
      path: "/search",
      headers: { "x-api-key": apiKey },
      body: JSON.stringify({
        q: withSiteOperators(query, wish, MAX_CHARACTERS, MAX_WORDS),
        num: wish.count,
        ...(country === undefined ? {} : { gl: country.toLowerCase() }),
      }),
    };
  },
  read({ organic }) {
    if (!Array.isArray(organic)) return undefined;
    return organic
      .filter(isObject)
      .map(({ link, title, snippet, date }) => toHit(link, title, snippet, date))
      .filter((hit) => hit !== undefined);
  },
};
