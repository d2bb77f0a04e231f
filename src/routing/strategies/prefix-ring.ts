// PrefixAwareHash by itself: prompts that begin alike meet the same backend, which may have their beginning in its cache. They
// are spread by their first block, as sessions are by ConsistentHash; the index knows better (prefix-index.ts).

import type { BackendEntry } from "../../backends/board.ts";
import { LOAD_FACTOR } from "../overload.ts";
import type { SelectionStrategy } from "../strategy.ts";
import { consistentHash } from "./consistent-hash.ts";

/** A prompt that has no whole block goes where its session goes. */
export function prefixRing(): SelectionStrategy {
  const ring = consistentHash(
    LOAD_FACTOR,
    (query, candidates) => {
      const first = candidates[0] as BackendEntry;
      return query.prefixAt?.(first.backend.name)?.first ?? query.sessionKey();
    },
    true,
  );
  return {
    ...ring,
    scoreMeans:
      "lot that the prompt's first block draws for it; the highest is chosen that has not more than its share",
  };
}
