// Token counts. In the Messages format input_tokens are only those that touched no cache; the neutral total has them all.

import { freshInput, type Usage } from "../../generation/usage.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { countOf, optionalCount } from "./wire.ts";

export function decodeUsage(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined;
  const cacheRead = optionalCount(value.cache_read_input_tokens);
  const cacheWrite = optionalCount(value.cache_creation_input_tokens);
  const usage: Usage = {
    input: { total: countOf(value.input_tokens) + (cacheRead ?? 0) + (cacheWrite ?? 0) },
    output: { total: countOf(value.output_tokens) },
  };
  if (cacheRead !== undefined) usage.input.cacheRead = cacheRead;
  if (cacheWrite !== undefined) usage.input.cacheWrite = cacheWrite;
  const cacheWrite1h = memberCount(value.cache_creation, "ephemeral_1h_input_tokens");
  if (cacheWrite1h !== undefined) usage.input.cacheWrite1h = cacheWrite1h;
  const reasoning = memberCount(value.output_tokens_details, "thinking_tokens");
  if (reasoning !== undefined) usage.output.reasoning = reasoning;
  const webSearches = memberCount(value.server_tool_use, "web_search_requests");
  if (webSearches !== undefined) usage.webSearches = webSearches;
  return usage;
}

function memberCount(value: unknown, member: string): number | undefined {
  return isObject(value) ? optionalCount(value[member]) : undefined;
}

/** The counts of a stream so far: a later event replaces what it names and leaves the rest. */
export function mergeUsage(before: JsonObject | undefined, value: unknown): JsonObject | undefined {
  if (!isObject(value)) return before;
  const merged: JsonObject = { ...before };
  for (const [member, count] of Object.entries(value)) {
    if (count !== null && count !== undefined) merged[member] = count;
  }
  return merged;
}

/** Zeros when the backend did not count: SDKs fail on answers without usage. */
export function encodeUsage(usage: Usage | undefined): JsonObject {
  if (usage === undefined) {
    return { input_tokens: 0, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 };
  }
  const { cacheRead = 0, cacheWrite = 0, cacheWrite1h } = usage.input;
  const encoded: JsonObject = {
    input_tokens: freshInput(usage),
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    output_tokens: usage.output.total,
  };
  if (cacheWrite1h !== undefined) {
    encoded.cache_creation = {
      ephemeral_5m_input_tokens: Math.max(0, cacheWrite - cacheWrite1h),
      ephemeral_1h_input_tokens: cacheWrite1h,
    };
  }
  if (usage.output.reasoning !== undefined) encoded.output_tokens_details = { thinking_tokens: usage.output.reasoning };
  if (usage.webSearches !== undefined) {
    encoded.server_tool_use = { web_search_requests: usage.webSearches, web_fetch_requests: 0 };
  }
  return encoded;
}
