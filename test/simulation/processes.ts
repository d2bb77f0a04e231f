// Prints how long small tenants wait behind a heavy one with the real gateway, in the same table as run.ts, beside what the simulation
// says of the same engines and clients: sh bin/bun test/simulation/processes.ts [seed] [seconds]

import { loadavg } from "node:os";
import { type Outcome, run, SCENARIO, type Scenario } from "./fair-queue.ts";
import { runOverSockets } from "./over-sockets.ts";
import { outcomeRow, TABLE_HEAD } from "./table.ts";

const seed = Number(process.argv[2] ?? SCENARIO.seed);
const measuredMs = 1000 * Number(process.argv[3] ?? 100);

/** Smaller batches and shorter answers than those of run.ts, so that two cores can write all tokens. */
const scenario: Scenario = {
  ...{ seed, engines: 8, agents: 60, burst: 16 },
  shape: { slots: 12, stepMs: 20, sequenceMs: 0.5, inputTokenMs: 0.06, chunkTokens: 2048 },
  heavy: { input: 5_500, cached: 5_000, output: 120 },
  small: { input: 1_500, cached: 0, output: 50 },
  ...{ estimate: 1, smallRate: 1.2, warmUpMs: 30_000, measuredMs },
};
/** So long the gateway needs to find its limit. */
const autoWarmUpMs = 180_000;
const POLICIES = [
  { name: "small tenants alone", queue: "a number", simulated: "fair, a number", agents: 0, warmUpMs: 5_000 },
  { name: "admission off", queue: "off", simulated: "FCFS in the engines" },
  { name: "fair, a number", queue: "a number", simulated: "fair, a number" },
  { name: "fair, auto", queue: "auto", simulated: "fair, auto", warmUpMs: autoWarmUpMs },
] as const;

const table = (title: string, rows: readonly string[]) =>
  process.stdout.write(`${[`**${title}**`, "", ...TABLE_HEAD, ...rows].join("\n")}\n\n`);

/** The first is what the small tenants have alone, the second first come first served. */
function rowsOf(outcomes: readonly Outcome[]): string[] {
  const [alone, first] = outcomes as [Outcome, Outcome];
  return outcomes.map((outcome, index) =>
    outcomeRow(POLICIES[index]?.name ?? "", outcome, { alone, best: index === 0 ? 0 : first.throughput }),
  );
}

const [measured, simulated]: [Outcome[], Outcome[]] = [[], []];
for (const { name, queue, simulated: policy, ...more } of POLICIES) {
  const outcome = await runOverSockets(queue, { ...scenario, ...more });
  process.stderr.write(
    `${name}: ${outcome.failed} failed, agents' calls lost ${(100 * outcome.heavyLost).toFixed(2)} %, ${outcome.heavyRate.toFixed(1)} a second, the gateway used ${outcome.gatewayCores.toFixed(2)} cores, load ${loadavg()[0]?.toFixed(1)}\n`,
  );
  measured.push(outcome);
  simulated.push(await run(policy, { ...scenario, ...more }));
}
table("real processes", rowsOf(measured));
table("the same in virtual time", rowsOf(simulated));
