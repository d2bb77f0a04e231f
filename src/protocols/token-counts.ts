// Token counts in the words that the Responses, image and audio formats share: input_tokens and output_tokens, which
// include their parts.

import type { Usage } from "../generation/usage.ts";
import { compact, isObject, type JsonObject } from "../lib/json.ts";
import { objectOf, wholeNumberOf } from "./reading.ts";

/** Undefined when the backend did not count. */
export function decodeTokenCounts(usage: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined;
  const input = wholeNumberOf(usage.input_tokens);
  const output = wholeNumberOf(usage.output_tokens);
  if (input === undefined && output === undefined) return undefined;
  const details = objectOf(usage.input_tokens_details);
  const reasoning = wholeNumberOf(objectOf(usage.output_tokens_details).reasoning_tokens);
  return {
    input: compact({
      total: input ?? 0,
      cacheRead: wholeNumberOf(details.cached_tokens),
      cacheWrite: wholeNumberOf(details.cache_write_tokens),
    }),
    output: compact({ total: output ?? 0, reasoning }),
  };
}

/** Both counts together, member by member; of what is no number, the first one's value is kept. */
export function addCounts(one: JsonObject | undefined, other: JsonObject | undefined): JsonObject | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const sum: JsonObject = { ...one };
  for (const [name, value] of Object.entries(other)) {
    const before = Object.hasOwn(one, name) ? one[name] : undefined;
    if (typeof before === "number" && typeof value === "number") sum[name] = before + value;
    else if (isObject(before) && isObject(value)) sum[name] = addCounts(before, value);
    else sum[name] = before ?? value;
  }
  return sum;
}
