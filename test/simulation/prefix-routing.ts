// Prints the table of docs/scaling.md: every strategy under every workload, in virtual time.
//   sh bin/bun test/simulation/prefix-routing.ts [--seed 1] [--size 1]

import { parseArgs } from "node:util";
import { type Outcome, type Routing, run } from "./prefix-engines.ts";
import { workloads } from "./prefix-workloads.ts";

const { values } = parseArgs({
  options: { seed: { type: "string", default: "1" }, size: { type: "string", default: "1" } },
});

const ROUTINGS: readonly [title: string, routing: Routing][] = [
  ["RoundRobin", { strategy: "RoundRobin" }],
  ["WeightedRoundRobin", { strategy: "WeightedRoundRobin" }],
  ["Random", { strategy: "Random" }],
  ["LeastLatency", { strategy: "LeastLatency" }],
  ["ConsistentHash", { strategy: "ConsistentHash" }],
  ["PrefixAwareHash without the index", { strategy: "PrefixAwareHash" }],
  ["PrefixAwareHash", { strategy: "PrefixAwareHash", hasIndex: true }],
];

const row = (title: string, outcome: Outcome) =>
  `| ${title} | ${(outcome.hitRate * 100).toFixed(0)} % | ${outcome.imbalance.toFixed(2)} | ${outcome.firstTokenMs.toFixed(0)} ms | ${outcome.p95FirstTokenMs.toFixed(0)} ms |`;

for (const workload of workloads(Number(values.size))) {
  console.log(`\n**${workload.name}**\n`);
  console.log("| Strategy | Found in caches | Most by mean | First token, mean | 95 % |\n|---|---|---|---|---|");
  for (const [title, routing] of ROUTINGS) console.log(row(title, run(workload, routing, Number(values.seed))));
}
