// Token counts of chat and text completions. Their totals include their parts, as the neutral ones do.

import type { Usage } from "../generation/usage.ts";
import { compact, isObject, type JsonObject } from "../lib/json.ts";
import { countOf, objectOf } from "./reading.ts";

export function encodeUsage({ input, output }: Usage): JsonObject {
  const { cacheRead, cacheWrite } = input;
  const { reasoning } = output;
  const cached = compact({ cached_tokens: cacheRead, cache_write_tokens: cacheWrite });
  return {
    prompt_tokens: input.total,
    completion_tokens: output.total,
    total_tokens: input.total + output.total,
    ...(Object.keys(cached).length > 0 && { prompt_tokens_details: cached }),
    ...(reasoning !== undefined && { completion_tokens_details: { reasoning_tokens: reasoning } }),
  };
}

/** Undefined when nothing was counted. */
export function decodeUsage(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined;
  const prompt = countOf(value.prompt_tokens);
  const completion = countOf(value.completion_tokens);
  const total = countOf(value.total_tokens) ?? 0;
  if (prompt === undefined && completion === undefined) return undefined;
  const details = objectOf(value.prompt_tokens_details);
  const input = prompt ?? Math.max(0, total - (completion ?? 0));
  const output = completion ?? Math.max(0, total - (prompt ?? 0));
  // DeepSeek and Moonshot count what they read from their caches outside of the details.
  const cached =
    countOf(details.cached_tokens) ?? countOf(value.prompt_cache_hit_tokens) ?? countOf(value.cached_tokens);
  const reasoning = countOf(objectOf(value.completion_tokens_details).reasoning_tokens);
  return {
    input: { total: input, ...cachedParts(input, cached, countOf(details.cache_write_tokens)) },
    output: { total: output, ...compact({ reasoning }) },
  };
}

/** Routers count what was written to a cache among what was read, too: the parts never exceed the whole prompt. */
function cachedParts(total: number, cached: number | undefined, written: number | undefined) {
  const cacheWrite = written === undefined ? undefined : Math.min(written, total);
  const isTwice = (cached ?? 0) + (cacheWrite ?? 0) > total;
  const read = isTwice ? Math.max(0, (cached ?? 0) - (cacheWrite ?? 0)) : cached;
  return compact({ cacheRead: read === undefined ? undefined : Math.min(read, total - (cacheWrite ?? 0)), cacheWrite });
}
