// Prints how long small tenants wait behind a heavy one, under each policy, as the table of docs/scaling.md: sh bin/bun test/simulation/run.ts

import { type Outcome, POLICIES, run, SCENARIO } from "./fair-queue.ts";

const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;
const percent = (part: number) => `${(100 * part).toFixed(1)} %`;
const seed = Number(process.argv[2] ?? SCENARIO.seed);
const scenario = { ...SCENARIO, seed };
const alone = await run("fair, a number", { ...scenario, agents: 0 });
const lines: string[] = [];

function row(name: string, outcome: Outcome, best: number): string {
  const { p50Ms, p95Ms, maxMs, smallLost, heavyP95Ms, throughput, jain, limit } = outcome;
  const waits = `${seconds(p50Ms)} | ${seconds(p95Ms)} | ${(p95Ms / alone.p95Ms).toFixed(2)} | ${seconds(maxMs)} | ${percent(smallLost)}`;
  const all = best === 0 ? "– | – | –" : `${seconds(heavyP95Ms)} | ${percent(throughput / best)} | ${jain.toFixed(3)}`;
  return `| ${name} | ${waits} | ${all} | ${Number.isFinite(limit) ? limit : "–"} |`;
}

let best = 0;
lines.push(row("small tenants alone", alone, 0));
for (const policy of POLICIES) {
  const outcome = await run(policy, scenario);
  if (policy === "FCFS in the engines") best = outcome.throughput;
  lines.push(row(policy, outcome, best));
}
process.stdout.write(
  `${["| Policy | p50 | p95 | by alone | longest | left | agents' p95 | throughput | Jain | limit |", "|---|---|---|---|---|---|---|---|---|---|", ...lines].join("\n")}\n`,
);
