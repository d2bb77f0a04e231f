// Prints how long small tenants wait behind a heavy one, under each policy, as the table of docs/scaling.md: sh bin/bun
// test/simulation/run.ts [seed] [tokens of a call of the agents that are not in the cache]

import { POLICIES, run, SCENARIO } from "./fair-queue.ts";
import { outcomeRow, TABLE_HEAD } from "./table.ts";

const { heavy } = SCENARIO;
const seed = Number(process.argv[2] ?? SCENARIO.seed);
const uncached = Number(process.argv[3] ?? heavy.input - heavy.cached);
const scenario = { ...SCENARIO, seed, heavy: { ...heavy, cached: heavy.input - uncached } };
const alone = await run("fair, a number", { ...scenario, agents: 0 });
const rows = [outcomeRow("small tenants alone", alone, { alone, best: 0 })];
let best = 0;
for (const policy of POLICIES) {
  const outcome = await run(policy, scenario);
  if (policy === "FCFS in the engines") best = outcome.throughput;
  rows.push(outcomeRow(policy, outcome, { alone, best }));
}
process.stdout.write(`${[...TABLE_HEAD, ...rows].join("\n")}\n`);
