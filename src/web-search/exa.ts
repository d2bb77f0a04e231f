// Exa: POST https://api.exa.ai/search, key in x-api-key (Exa documentation, "Search"; exa-labs/exa-js).

import { countryCode, type SearchService } from "./service.ts";

/** Exa documents no limit; this is more than a search needs. */
const MAX_CHARACTERS = 2_048;
/** Length of the excerpt from the beginning of each page. */
const EXCERPT_CHARACTERS = 1_500;

export const exa: SearchService = {
  defaultUrl: "https://api.exa.ai",
  limits: { characters: MAX_CHARACTERS },
  request(query, { count, allowedDomains, blockedDomains, location }, apiKey) {
    return {
      path: "/search",
      headers: { "x-api-key": apiKey },
      body: {
        query,
        type: "auto",
        numResults: count,
        ...(allowedDomains === undefined || allowedDomains.length === 0 ? {} : { includeDomains: allowedDomains }),
        ...(blockedDomains === undefined || blockedDomains.length === 0 ? {} : { excludeDomains: blockedDomains }),
        userLocation: countryCode(location),
        contents: { text: { maxCharacters: EXCERPT_CHARACTERS } },
      },
    };
  },
  results: ({ results }) => results,
  fields: ({ url, title, text, publishedDate }) => ({ url, title, snippet: text, age: longDate(publishedDate) }),
};

/** "April 30, 2026" for an ISO date, the form in which clients know ages of pages. */
function longDate(value: unknown): string | undefined {
  const date = typeof value === "string" ? new Date(value) : undefined;
  if (date === undefined || Number.isNaN(date.getTime())) return undefined;
  return date.toLocaleDateString("en-US", { dateStyle: "long", timeZone: "UTC" });
}
