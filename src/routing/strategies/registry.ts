// Configuration name -> selection strategy.

import type { StrategyName } from "../../config/sections/routing.ts";
import type { SelectionStrategy } from "../strategy.ts";
import { consistentHash } from "./consistent-hash.ts";
import { leastLatency } from "./least-latency.ts";
import { randomChoice } from "./random.ts";
import { roundRobin } from "./round-robin.ts";
import { weightedRoundRobin } from "./weighted-round-robin.ts";

const STRATEGIES: Record<StrategyName, () => SelectionStrategy> = {
  RoundRobin: roundRobin,
  WeightedRoundRobin: weightedRoundRobin,
  LeastLatency: leastLatency,
  Random: randomChoice,
  ConsistentHash: consistentHash,
};

export function createStrategy(name: StrategyName): SelectionStrategy {
  return STRATEGIES[name]();
}
