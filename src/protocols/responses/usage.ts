// Token counts: this format's totals include their parts, as the neutral ones do.

import type { Usage } from "../../generation/usage.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { objectOf, wholeNumberOf } from "../reading.ts";

/** Strictly typed clients need every count, so what was not counted is 0. */
export function encodeUsage(usage: Usage | undefined): JsonObject {
  const input = usage?.input.total ?? 0;
  const output = usage?.output.total ?? 0;
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: usage?.input.cacheRead ?? 0,
      cache_write_tokens: usage?.input.cacheWrite ?? 0,
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage?.output.reasoning ?? 0 },
    total_tokens: input + output,
  };
}

/** Undefined when the backend did not count. */
export function decodeUsage(usage: unknown, webSearches: number): Usage | undefined {
  if (!isObject(usage)) return undefined;
  const input = wholeNumberOf(usage.input_tokens);
  const output = wholeNumberOf(usage.output_tokens);
  if (input === undefined && output === undefined) return undefined;
  const details = objectOf(usage.input_tokens_details);
  const reasoning = wholeNumberOf(objectOf(usage.output_tokens_details).reasoning_tokens);
  return compact({
    input: compact({
      total: input ?? 0,
      cacheRead: wholeNumberOf(details.cached_tokens),
      cacheWrite: wholeNumberOf(details.cache_write_tokens),
    }),
    output: compact({ total: output ?? 0, reasoning }),
    webSearches: webSearches || undefined,
  });
}
