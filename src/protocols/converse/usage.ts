// Token counts. Here inputTokens are only those that touched no cache; the neutral total has them all.

import type { Usage } from "../../generation/usage.ts";
import { compact, isObject } from "../../lib/json.ts";
import { objectsOf, wholeNumberOf } from "../reading.ts";

/** Undefined when the backend did not count. */
export function decodeUsage(value: unknown): Usage | undefined {
  if (!isObject(value)) return undefined;
  const fresh = wholeNumberOf(value.inputTokens);
  const output = wholeNumberOf(value.outputTokens);
  if (fresh === undefined && output === undefined) return undefined;
  const cacheRead = wholeNumberOf(value.cacheReadInputTokens);
  const cacheWrite = wholeNumberOf(value.cacheWriteInputTokens);
  const hour = objectsOf(value.cacheDetails).find(({ ttl }) => ttl === "1h");
  return {
    input: {
      total: (fresh ?? 0) + (cacheRead ?? 0) + (cacheWrite ?? 0),
      ...compact({ cacheRead, cacheWrite, cacheWrite1h: wholeNumberOf(hour?.inputTokens) }),
    },
    output: { total: output ?? 0 },
  };
}
