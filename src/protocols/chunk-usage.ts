// Token counts of chat and text completions. Their totals include their parts, as the neutral ones do.

import type { Usage } from "../generation/usage.ts";
import { isObject, type JsonObject } from "../lib/json.ts";

export function encodeUsage({ input, output }: Usage): JsonObject {
  const { cacheRead, cacheWrite } = input;
  const { reasoning } = output;
  const wasCached = cacheRead !== undefined || cacheWrite !== undefined;
  return {
    prompt_tokens: input.total,
    completion_tokens: output.total,
    total_tokens: input.total + output.total,
    ...(wasCached && {
      prompt_tokens_details: {
        ...(cacheRead !== undefined && { cached_tokens: cacheRead }),
        ...(cacheWrite !== undefined && { cache_write_tokens: cacheWrite }),
      },
    }),
    ...(reasoning !== undefined && { completion_tokens_details: { reasoning_tokens: reasoning } }),
  };
}

/** Undefined when nothing was counted. */
export function decodeUsage(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined;
  const prompt = count(value.prompt_tokens);
  const completion = count(value.completion_tokens);
  const total = count(value.total_tokens);
  if (prompt === undefined && completion === undefined) return undefined;
  const promptDetails = isObject(value.prompt_tokens_details) ? value.prompt_tokens_details : {};
  const completionDetails = isObject(value.completion_tokens_details) ? value.completion_tokens_details : {};
  const usage: Usage = {
    input: { total: prompt ?? Math.max(0, (total ?? 0) - (completion ?? 0)) },
    output: { total: completion ?? Math.max(0, (total ?? 0) - (prompt ?? 0)) },
  };
  // DeepSeek and Moonshot count what they read from their caches outside of the details.
  const cached =
    count(promptDetails.cached_tokens) ?? count(value.prompt_cache_hit_tokens) ?? count(value.cached_tokens);
  const { cacheRead, cacheWrite } = partsOf(usage.input.total, cached, count(promptDetails.cache_write_tokens));
  const reasoning = count(completionDetails.reasoning_tokens);
  if (cacheRead !== undefined) usage.input.cacheRead = cacheRead;
  if (cacheWrite !== undefined) usage.input.cacheWrite = cacheWrite;
  if (reasoning !== undefined) usage.output.reasoning = reasoning;
  return usage;
}

/** Routers count what was written to a cache among what was read, too: the parts never exceed the whole prompt. */
function partsOf(
  total: number,
  cached: number | undefined,
  written: number | undefined,
): { cacheRead: number | undefined; cacheWrite: number | undefined } {
  const cacheWrite = written === undefined ? undefined : Math.min(written, total);
  const isTwice = (cached ?? 0) + (cacheWrite ?? 0) > total;
  const read = isTwice ? Math.max(0, (cached ?? 0) - (cacheWrite ?? 0)) : cached;
  return { cacheRead: read === undefined ? undefined : Math.min(read, total - (cacheWrite ?? 0)), cacheWrite };
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}
