// Prompt cache breakpoints. They are taken in six places (system text, user text, user image, tool definition, tool use,
// tool result), and a request may have four at most.

import type { CacheHint } from "../../generation/content.ts";
import type { DropList } from "../../generation/dropped.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";

const MAX_BREAKPOINTS = 4;

/** The hint as an optional member of a neutral part. */
export function cacheMember(value: unknown): { cache?: CacheHint } {
  if (!isObject(value)) return {};
  const { ttl } = value;
  return { cache: ttl === "5m" || ttl === "1h" ? { ttl } : {} };
}

/** The hint as an optional member of a block. */
export function cacheControlMember(hint: CacheHint | undefined): JsonObject {
  return hint === undefined ? {} : { cache_control: { type: "ephemeral", ...hint } };
}

/**
 * Takes breakpoints away until four are left. A later breakpoint covers the earlier prefix, so the last ones stay.
 * The blocks are given in the order of the prompt and belong to the request that is being built.
 */
export function limitBreakpoints(blocks: readonly JsonObject[], dropped: DropList): void {
  const marked = blocks.filter((block) => block.cache_control !== undefined && block.cache_control !== null);
  for (const block of marked.slice(0, Math.max(0, marked.length - MAX_BREAKPOINTS))) {
    delete block.cache_control;
    dropped.add("cache_control", `only the last ${MAX_BREAKPOINTS} breakpoints are kept`);
  }
}
