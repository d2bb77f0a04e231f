// serper.dev: Google's results. POST https://google.serper.dev/search, key in X-API-KEY
// (OpenAPI description of the "Serper Google Search API", schemas SearchRequest and SearchResponse).

import { withSiteOperators } from "./domains.ts";
import { countryCode, type SearchService } from "./service.ts";

/** Google reads no more than 32 words and about 2,000 characters of a query. */
const MAX_CHARACTERS = 2_048;
const MAX_WORDS = 32;

export const serper: SearchService = {
  defaultUrl: "https://google.serper.dev",
  limits: { characters: MAX_CHARACTERS },
  request(query, wish, apiKey) {
    return {
      path: "/search",
      headers: { "x-api-key": apiKey },
      body: {
        q: withSiteOperators(query, wish, MAX_CHARACTERS, MAX_WORDS),
        num: wish.count,
        gl: countryCode(wish.location)?.toLowerCase(),
      },
    };
  },
  results: ({ organic }) => organic,
  fields: ({ link, title, snippet, date }) => ({ url: link, title, snippet, age: date }),
};
