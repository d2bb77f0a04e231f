// What statistics and metrics count of a request: which of its tokens, and under which name.

import type { Usage } from "../generation/usage.ts";
import type { RequestRecord } from "./request-record.ts";

/** The name under which everything is counted that is too much to be counted by name. */
export const OTHER = "(other)";

/** No request has so many. A backend that claims more would make every sum useless, its costs infinite. */
const MAX_TOKENS = 1e9;

/** Tokens that a backend worked for: not those of answers that were there already. */
export function countedUsage({ usage, cache, isShared }: RequestRecord): Usage | undefined {
  if (usage === undefined || cache === "HIT" || isShared) return undefined;
  const { input, output } = usage;
  const { total, cacheRead = 0, cacheWrite = 0 } = input;
  return Math.max(total, cacheRead, cacheWrite, output.total) <= MAX_TOKENS ? usage : undefined;
}
