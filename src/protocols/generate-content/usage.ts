// Token counts. Thoughts are counted beside the answer here, and prompts of the vendor's own tools beside the prompt; the
// neutral totals have them all.

import type { Usage } from "../../generation/usage.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { optionalCount } from "./wire.ts";

/** Undefined when nothing was counted. Counts that are left out are 0. */
export function decodeUsage(value: unknown, webSearches = 0): Usage | undefined {
  if (!isObject(value)) return undefined;
  const count = (member: string): number => optionalCount(value[member]) ?? 0;
  const cacheRead = optionalCount(value.cachedContentTokenCount);
  const reasoning = optionalCount(value.thoughtsTokenCount);
  return {
    input: { total: count("promptTokenCount") + count("toolUsePromptTokenCount"), ...compact({ cacheRead }) },
    output: { total: count("candidatesTokenCount") + (reasoning ?? 0), ...compact({ reasoning }) },
    ...(webSearches > 0 && { webSearches }),
  };
}

/** Thoughts are told beside the answer, and the sum of all. */
export function encodeUsage({ input, output }: Usage): JsonObject {
  const { cacheRead } = input;
  const { reasoning } = output;
  return {
    promptTokenCount: input.total,
    candidatesTokenCount: Math.max(0, output.total - (reasoning ?? 0)),
    totalTokenCount: input.total + output.total,
    ...compact({ cachedContentTokenCount: cacheRead, thoughtsTokenCount: reasoning }),
  };
}
