// What the KV cache index is for, in virtual time; the whole table is printed by prefix-routing.ts.

import { expect, test } from "bun:test";
import { type Outcome, run } from "./prefix-engines.ts";
import { workloads } from "./prefix-workloads.ts";

const SIZE = 0.15;

function outcomes(name: string, seed: number): Record<"roundRobin" | "leastLatency" | "prefixAware", Outcome> {
  const workload = workloads(SIZE).find((each) => each.name === name);
  if (workload === undefined) throw new Error(`there is no workload ${name}`);
  return {
    roundRobin: run(workload, { strategy: "RoundRobin" }, seed),
    leastLatency: run(workload, { strategy: "LeastLatency" }, seed),
    prefixAware: run(workload, { strategy: "PrefixAwareHash", hasIndex: true }, seed),
  };
}

for (const seed of [1, 2, 3]) {
  // Agents find much of their tools everywhere: RoundRobin cannot miss more than half.
  for (const [name, factor] of [
    ["multi-turn", 2],
    ["agents", 1.4],
  ] as const) {
    test(`${name}: ${factor} times as much is found in caches as by RoundRobin, and the first token comes sooner (seed ${seed})`, () => {
      const { roundRobin, leastLatency, prefixAware } = outcomes(name, seed);
      expect(prefixAware.hitRate).toBeGreaterThanOrEqual(factor * roundRobin.hitRate);
      expect(prefixAware.firstTokenMs).toBeLessThan(Math.min(roundRobin.firstTokenMs, leastLatency.firstTokenMs));
      expect(prefixAware.imbalance).toBeLessThan(1.5);
    });
  }

  test(`one system prompt for nearly all does not send everything to one engine (seed ${seed})`, () => {
    const { leastLatency, prefixAware } = outcomes("shared system prompt", seed);
    expect(prefixAware.imbalance).toBeLessThan(1.3);
    expect(prefixAware.hitRate).toBeGreaterThan(0.95 * leastLatency.hitRate);
    expect(prefixAware.firstTokenMs).toBeLessThanOrEqual(1.05 * leastLatency.firstTokenMs);
  });

  test(`bursts of prompts that begin alike are no hot spots (seed ${seed})`, () => {
    const { leastLatency, prefixAware } = outcomes("bursts", seed);
    expect(prefixAware.imbalance).toBeLessThan(1.3);
    expect(prefixAware.firstTokenMs).toBeLessThanOrEqual(1.05 * leastLatency.firstTokenMs);
  });

  test(`where nothing is shared, it is as quick as LeastLatency (seed ${seed})`, () => {
    const { leastLatency, prefixAware } = outcomes("no sharing", seed);
    expect(prefixAware.hitRate).toBe(0);
    expect(prefixAware.firstTokenMs).toBeLessThanOrEqual(1.05 * leastLatency.firstTokenMs);
  });
}
