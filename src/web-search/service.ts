// What every search service has to say about itself: how it is asked, and how its answer is read.

import type { SearchHit } from "../generation/content.ts";
import { isObject, type JsonObject } from "../lib/json.ts";

/** The error codes of the Messages format; other formats have none of their own. */
export type SearchErrorCode =
  | "invalid_tool_input"
  | "unavailable"
  | "max_uses_exceeded"
  | "too_many_requests"
  | "query_too_long";

export interface UserLocation {
  city?: string;
  region?: string;
  /** Two letters, ISO 3166-1. */
  country?: string;
  /** A name of the IANA time zone database. */
  timezone?: string;
}

export interface SearchWish {
  /** Most results. */
  count: number;
  allowedDomains?: readonly string[];
  blockedDomains?: readonly string[];
  location?: UserLocation;
}

interface ServiceRequest {
  /** Below the base URL, with its query. */
  path: string;
  headers: Record<string, string>;
  /** To be sent as JSON with POST, without what is undefined; where there is none, the request is a GET. */
  body?: JsonObject;
}

export interface SearchService {
  defaultUrl: string;
  /** Longest query that the service takes. */
  limits: { characters: number; words?: number };
  request(query: string, wish: SearchWish, apiKey: string): ServiceRequest;
  /** The list of results; anything else when it is no answer of the service. */
  results(answer: JsonObject): unknown;
  /** The fields of one result, unchecked. */
  fields(result: JsonObject): Record<"url" | "title" | "snippet" | "age", unknown>;
}

/** Long enough for an excerpt, short enough that ten of them leave room in a small model's context. */
const MAX_SNIPPET_LENGTH = 2_000;
const MAX_TITLE_LENGTH = 300;
const MAX_AGE_LENGTH = 60;
const MAX_URL_LENGTH = 2_048;

const ENTITIES: Readonly<Record<string, string>> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#39;": "'",
  "&#x27;": "'",
  "&nbsp;": " ",
};

/** Text of a web page as plain text on few lines; services leave marks and entities in it. */
function plainText(value: unknown, maxLength: number): string {
  if (typeof value !== "string") return "";
  return value
    .slice(0, 2 * maxLength)
    .replaceAll(/<\/?[a-z][a-z0-9]*>/gi, "")
    .replaceAll(/&(?:amp|lt|gt|quot|nbsp|#39|#x27);/gi, (entity) => ENTITIES[entity.toLowerCase()] ?? entity)
    .replaceAll(/\s+/g, " ")
    .trim()
    .slice(0, maxLength)
    .toWellFormed();
}

/** The results, bounded, without those that have no address which a browser could open. */
export function readHits(service: SearchService, answer: JsonObject): SearchHit[] | undefined {
  const results = service.results(answer);
  if (!Array.isArray(results)) return undefined;
  return results
    .filter(isObject)
    .map((result) => toHit(service.fields(result)))
    .filter((hit) => hit !== undefined);
}

function toHit({ url, title, snippet, age }: ReturnType<SearchService["fields"]>): SearchHit | undefined {
  if (typeof url !== "string" || url.length > MAX_URL_LENGTH || !/^https?:\/\//i.test(url)) return undefined;
  if (!URL.canParse(url)) return undefined;
  const hit: SearchHit = { url, title: plainText(title, MAX_TITLE_LENGTH) || url };
  const text = plainText(snippet, MAX_SNIPPET_LENGTH);
  if (text !== "") hit.snippet = text;
  const pageAge = plainText(age, MAX_AGE_LENGTH);
  if (pageAge !== "") hit.pageAge = pageAge;
  return hit;
}

/** "DE" for "de"; undefined for anything that is no country code. */
export function countryCode(location: UserLocation | undefined): string | undefined {
  const country = location?.country?.trim();
  return country !== undefined && /^[A-Za-z]{2}$/.test(country) ? country.toUpperCase() : undefined;
}
