// Token counts: this format's totals include their parts, as the neutral ones do.

import type { Usage } from "../../generation/usage.ts";
import type { JsonObject } from "../../lib/json.ts";
import { decodeTokenCounts } from "../token-counts.ts";

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
  const counted = decodeTokenCounts(usage);
  return counted === undefined || webSearches === 0 ? counted : { ...counted, webSearches };
}
