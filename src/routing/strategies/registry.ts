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

export function createStrategy(routing: Settings["routing"]): SelectionStrategy {
  return STRATEGIES[routing.selection_strategy](routing);
}
