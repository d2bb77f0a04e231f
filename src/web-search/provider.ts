// One search at the configured service: bounded in time and size, and filtered. Trouble is an outcome, never an exception;
// neither the key nor the query appears in it.

import type { Settings } from "../config/sections/registry.ts";
import type { SearchHit } from "../generation/content.ts";
import type { Deadline, Deadlines } from "../lib/deadlines.ts";
import { parseObject } from "../lib/json.ts";
import { readBounded } from "../lib/read-bounded.ts";
import { brave } from "./brave.ts";
import { siteFilter, wordCount } from "./domains.ts";
import { exa } from "./exa.ts";
import { serper } from "./serper.ts";
import { readHits, type SearchErrorCode, type SearchService, type SearchWish } from "./service.ts";

export interface SearchOptions extends SearchWish {
  signal: AbortSignal;
}

export type SearchOutcome =
  | { ok: true; hits: SearchHit[] }
  /** `reason` is for the operator's log. */
  | { ok: false; errorCode: SearchErrorCode; reason: string };

export interface SearchProvider {
  name: string;
  search(query: string, options: SearchOptions): Promise<SearchOutcome>;
}

const SERVICES: Readonly<Record<NonNullable<Settings["web_search"]["provider"]>, SearchService>> = {
  serper,
  brave,
  exa,
};

/** Twenty results with an excerpt each are far below it. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

/** Undefined while no provider is configured. */
export function createSearchProvider(
  settings: Settings["web_search"],
  { deadlines, now }: { deadlines: Deadlines; now(): number },
): SearchProvider | undefined {
  if (settings.provider === undefined) return undefined;
  const service = SERVICES[settings.provider];
  const baseUrl = (settings.base_url ?? service.defaultUrl).replace(/\/+$/, "");
  const apiKey = settings.api_key ?? "";

  async function ask(query: string, wish: SearchWish, signal: AbortSignal): Promise<SearchOutcome> {
    const { path, headers, body } = service.request(query, wish, apiKey);
    const response = await fetch(baseUrl + path, {
      headers: {
        accept: "application/json",
        "accept-encoding": "identity",
        ...(body && { "content-type": "application/json" }),
        ...headers,
      },
      ...(body && { method: "POST", body: JSON.stringify(body) }),
      // The key would follow a redirect.
      redirect: "manual",
      timeout: false,
      signal,
    } as RequestInit);
    if (response.status !== 200) {
      await response.body?.cancel().catch(() => undefined);
      return failed(errorCodeOf(response.status), `HTTP ${response.status}`);
    }
    const bytes = await readBounded(response.body, MAX_ANSWER_BYTES);
    if (bytes === undefined) return failed("unavailable", "the answer is too large");
    const answer = parseObject(new TextDecoder().decode(bytes)); // it may be HTML of a proxy, or half an answer
    const hits = answer && readHits(service, answer);
    if (hits === undefined) return failed("unavailable", "the answer could not be read");
    return { ok: true, hits: select(hits, wish) };
  }

  return {
    name: settings.provider,
    async search(query, { signal, ...wish }) {
      const text = query.trim();
      if (text === "") return failed("invalid_tool_input", "the query is empty");
      const { characters, words } = service.limits;
      if (text.length > characters || (words !== undefined && wordCount(text) > words)) {
        return failed("query_too_long", "the query is too long");
      }
      if (signal.aborted) return failed("unavailable", "the client has left");
      const abort = new AbortController();
      const leave = () => abort.abort();
      const deadline: Deadline = { deadlineMs: now() + settings.timeout, expire: leave };
      signal.addEventListener("abort", leave, { once: true });
      deadlines.add(deadline);
      try {
        return await ask(text, wish, abort.signal);
      } catch (error) {
        if (signal.aborted) return failed("unavailable", "the client has left");
        return failed("unavailable", abort.signal.aborted ? "no answer in time" : codeOf(error));
      } finally {
        deadlines.remove(deadline);
        signal.removeEventListener("abort", leave);
        abort.abort(); // whatever is still open is given up
      }
    },
  };
}

function failed(errorCode: SearchErrorCode, reason: string): SearchOutcome {
  return { ok: false, errorCode, reason };
}

function errorCodeOf(status: number): SearchErrorCode {
  if (status === 429) return "too_many_requests";
  return status === 413 || status === 414 ? "query_too_long" : "unavailable";
}

/** Only codes: the runtime's messages may quote addresses and header values. */
function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? `the request failed (${code})` : "the request failed";
}

/** Services treat filters and counts as wishes. */
function select(hits: readonly SearchHit[], wish: SearchWish): SearchHit[] {
  const mayShow = siteFilter(wish);
  const seen = new Set<string>();
  const selected: SearchHit[] = [];
  for (const hit of hits) {
    if (selected.length === wish.count) break;
    if (seen.has(hit.url) || !mayShow(hit.url)) continue;
    seen.add(hit.url);
    selected.push(hit);
  }
  return selected;
}
