// Token counts. Thoughts are counted beside the answer here, and prompts of the vendor's own tools beside the prompt; the
// neutral totals have them all.

import type { Usage } from "../../generation/usage.ts";
import { isObject } from "../../lib/json.ts";
import { optionalCount } from "./wire.ts";

/** Undefined when nothing was counted. Counts that are left out are 0. */
export function decodeUsage(value: unknown, webSearches = 0): Usage | undefined {
  if (!isObject(value)) return undefined;
  const count = (member: string): number => optionalCount(value[member]) ?? 0;
  const cacheRead = optionalCount(value.cachedContentTokenCount);
  const reasoning = optionalCount(value.thoughtsTokenCount);
  const usage: Usage = {
    input: { total: count("promptTokenCount") + count("toolUsePromptTokenCount") },
    output: { total: count("candidatesTokenCount") + (reasoning ?? 0) },
  };
  if (cacheRead !== undefined) usage.input.cacheRead = cacheRead;
  if (reasoning !== undefined) usage.output.reasoning = reasoning;
  if (webSearches > 0) usage.webSearches = webSearches;
  return usage;
}
