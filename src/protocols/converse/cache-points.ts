// Cache points: blocks of their own behind what the prompt cache should keep. A request may have four.

import type { CacheHint } from "../../generation/content.ts";
import type { Encoding } from "./encoding.ts";
import type { ModelRules } from "./model-rules.ts";
import type { ConverseBlock } from "./wire.ts";

const MAX_CACHE_POINTS = 4;

const CACHE_POINT = { type: "default" };

/** The cache point behind a block; none where the model has none there. */
export function cachePoint(
  hint: CacheHint | undefined,
  place: ModelRules["cachePoints"][number],
  { rules, dropped }: Encoding,
): ConverseBlock[] {
  if (hint === undefined) return [];
  if (rules.cachePoints.includes(place)) {
    // The families that have cache points here keep a prefix for five minutes.
    if (hint.ttl === "1h") dropped.add("cache_control.ttl", "the model keeps a prefix for five minutes");
    return [{ cachePoint: CACHE_POINT }];
  }
  dropped.add(place === "tools" ? "cache_control on tools" : "cache_control", "the model has no cache points there");
  return [];
}

/** A later cache point covers the earlier prefix, so the last ones stay. The lists are in the order of the prompt. */
export function limitCachePoints(lists: readonly ConverseBlock[][], { dropped }: Encoding): void {
  let surplus = lists.flat().filter(isCachePoint).length - MAX_CACHE_POINTS;
  if (surplus <= 0) return;
  dropped.add("cache_control", `only the last ${MAX_CACHE_POINTS} breakpoints are kept`);
  for (const list of lists) {
    for (let index = 0; index < list.length && surplus > 0; ) {
      if (!isCachePoint(list[index] as ConverseBlock)) index++;
      else {
        list.splice(index, 1);
        surplus--;
      }
    }
  }
}

function isCachePoint(block: ConverseBlock): boolean {
  return block.cachePoint !== undefined;
}
