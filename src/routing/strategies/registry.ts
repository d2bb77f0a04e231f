// Configuration name -> selection strategy.

import type { Settings } from "../../config/sections/registry.ts";
import type { StrategyName } from "../../config/sections/routing.ts";
import type { SelectionStrategy } from "../strategy.ts";
import { consistentHash } from "./consistent-hash.ts";
import { leastLatency } from "./least-latency.ts";
import { prefixRing } from "./prefix-ring.ts";
import { randomChoice } from "./random.ts";
import { roundRobin } from "./round-robin.ts";
import { weightedRoundRobin } from "./weighted-round-robin.ts";

const STRATEGIES: Record<StrategyName, (routing: Settings["routing"]) => SelectionStrategy> = {
  RoundRobin: roundRobin,
  WeightedRoundRobin: weightedRoundRobin,
  LeastLatency: leastLatency,
  Random: randomChoice,
  ConsistentHash: (routing) => consistentHash(routing.session_affinity.load_factor),
  PrefixAwareHash: prefixRing,
};

/**
 * The strategy for choices that the index of KV caches does not make. With the index on, PrefixAwareHash is the index itself,
 * and its fallback strategy chooses for prompts that no backend has.
 */
export function createStrategy(
  routing: Settings["routing"],
  index?: Pick<Settings["kv_cache_index"], "enabled" | "fallback_strategy">,
): SelectionStrategy {
  const { selection_strategy: name } = routing;
  if (name !== "PrefixAwareHash" || !index?.enabled) return STRATEGIES[name](routing);
  const { fallback_strategy: fallback } = index;
  return { ...STRATEGIES[fallback](routing), decidedBy: fallback };
}
