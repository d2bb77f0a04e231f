// Prompt cache breakpoints. They are taken in six places (system text, user text, user image, tool definition, tool use,
// tool result), and a request may have four at most.

import type { CacheHint } from "../../generation/content.ts";
import type { DropList } from "../../generation/dropped.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";

export const MAX_BREAKPOINTS = 4;

export function decodeCacheControl(value: unknown): CacheHint | undefined {
  if (!isObject(value)) return undefined;
  return value.ttl === "5m" || value.ttl === "1h" ? { ttl: value.ttl } : {};
}

/** The hint as an optional member of a neutral part. */
export function cacheMember(value: unknown): { cache?: CacheHint } {
  const cache = decodeCacheControl(value);
  return cache === undefined ? {} : { cache };
}

/** The hint as an optional member of a block. */
export function cacheControlMember(hint: CacheHint | undefined): JsonObject {
  if (hint === undefined) return {};
  return { cache_control: hint.ttl === undefined ? { type: "ephemeral" } : { type: "ephemeral", ttl: hint.ttl } };
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
