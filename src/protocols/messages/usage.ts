// Token counts. In the Messages format input_tokens are only those that touched no cache; the neutral total has them all.

import { freshInput, type Usage } from "../../generation/usage.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { objectOf } from "../reading.ts";
import { countOf, optionalCount } from "./wire.ts";

export function decodeUsage(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined;
  const cacheRead = optionalCount(value.cache_read_input_tokens);
  const cacheWrite = optionalCount(value.cache_creation_input_tokens);
  const cacheWrite1h = optionalCount(objectOf(value.cache_creation).ephemeral_1h_input_tokens);
  const reasoning = optionalCount(objectOf(value.output_tokens_details).thinking_tokens);
  const webSearches = optionalCount(objectOf(value.server_tool_use).web_search_requests);
  return {
    input: {
      total: countOf(value.input_tokens) + (cacheRead ?? 0) + (cacheWrite ?? 0),
      ...compact({ cacheRead, cacheWrite, cacheWrite1h }),
    },
    output: { total: countOf(value.output_tokens), ...compact({ reasoning }) },
    ...compact({ webSearches }),
  };
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

const NOTHING_COUNTED: Usage = { input: { total: 0 }, output: { total: 0 } };

/** Zeros when the backend did not count: SDKs fail on answers without usage. */
export function encodeUsage(usage: Usage = NOTHING_COUNTED): JsonObject {
  const { input, output, webSearches } = usage;
  const { cacheRead = 0, cacheWrite = 0, cacheWrite1h } = input;
  return {
    input_tokens: freshInput(usage),
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    output_tokens: output.total,
    ...(cacheWrite1h !== undefined && {
      cache_creation: {
        ephemeral_5m_input_tokens: Math.max(0, cacheWrite - cacheWrite1h),
        ephemeral_1h_input_tokens: cacheWrite1h,
      },
    }),
    ...(output.reasoning !== undefined && { output_tokens_details: { thinking_tokens: output.reasoning } }),
    ...(webSearches !== undefined && {
      server_tool_use: { web_search_requests: webSearches, web_fetch_requests: 0 },
    }),
  };
}
