// sh bin/bun bench/compare.ts <treeA> <treeB>: what two source trees cost for the same load, in pairs of new processes
// that are loaded in turns. Only the ratios mean something on a machine that does other things too.

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { median } from "./figures.ts";
import type { LoadJob, LoadResult } from "./load.ts";
import { runLoad, warmUp } from "./measure.ts";
import { readFirstLine } from "./processes.ts";
import { runBenchmark } from "./program.ts";
import { ALL_MODELS, type GatewayParts, LOAD_SCENARIOS, type LoadScenario, type Metric } from "./scenarios.ts";
import {
  awaitFirstAnswer,
  type Subject,
  type Surroundings,
  startHelper,
  startSubject,
  startUpstream,
  stopSubject,
} from "./subjects.ts";
import { threadShares } from "./threads.ts";

const RUN_LIMIT_MS = 60 * 60_000;
const SLICE_MS = 1000;
/** Requests or chunks before anything is measured. */
const WARM_UP_UNITS = 100_000;
const SCENARIOS = LOAD_SCENARIOS.filter(({ metrics }) => cpuMetric(metrics) !== undefined);

const HELP = `Usage: sh bin/bun bench/compare.ts <treeA> <treeB> [options]

  --scenario <name>  ${SCENARIOS.map(({ name }) => name).join(", ")}; default plain
  --pairs <n>        pairs of new processes; default 8
  --rounds <n>       slices of ${SLICE_MS / 1000} s for each process of a pair; default 4
  --a <json>         more sections of A's configuration, e.g. '{"circuit_breaker":{"enabled":false}}'
  --b <json>         the same for B
  --telemetry        B sends all traces, and metrics, to a receiver of OTLP that takes everything
  --help             print this text

A tree is a folder with bin/signalbox. Prints the CPU time of all threads per request or per chunk, and B's ratio to A.
`;

interface Comparison {
  gateways: readonly [GatewayParts, GatewayParts];
  scenario: LoadScenario;
  metric: Metric;
  pairs: number;
  rounds: number;
  telemetry: boolean;
}

function readComparison(): Comparison {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      scenario: { type: "string", default: "plain" },
      pairs: { type: "string", default: "8" },
      rounds: { type: "string", default: "4" },
      a: { type: "string" },
      b: { type: "string" },
      telemetry: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const [treeA, treeB] = positionals;
  if (values.help) {
    console.log(HELP);
    process.exit(0);
  }
  if (treeA === undefined || treeB === undefined) throw new Error(`two source trees are needed\n\n${HELP}`);
  const scenario = SCENARIOS.find(({ name }) => name === values.scenario);
  if (!scenario) throw new Error(`--scenario: unknown scenario "${values.scenario}"\n\n${HELP}`);
  return {
    gateways: [gatewayOf(scenario, treeA, values.a), gatewayOf(scenario, treeB, values.b)],
    scenario,
    metric: cpuMetric(scenario.metrics)!,
    pairs: Number(values.pairs),
    rounds: Number(values.rounds),
    telemetry: values.telemetry,
  };
}

function cpuMetric(metrics: readonly Metric[]): Metric | undefined {
  return metrics.find(({ unit }) => unit === "µs");
}

function gatewayOf({ gateway }: LoadScenario, tree: string, sections: string | undefined): GatewayParts {
  const folder = resolve(tree);
  if (!existsSync(join(folder, "bin/signalbox"))) throw new Error(`${folder} has no bin/signalbox`);
  const more = sections === undefined ? {} : (JSON.parse(sections) as Record<string, object>);
  return { ...gateway, tree: folder, settings: { ...gateway?.settings, ...more } };
}

/** The figures of each process of one pair, one per round. */
async function measurePair(
  { gateways, scenario, rounds }: Comparison,
  pair: number,
  surroundings: Surroundings,
): Promise<[LoadResult[], LoadResult[]]> {
  const subjects = gateways.map((gateway) => startSubject("signalbox", surroundings, gateway)) as [Subject, Subject];
  const figures: [LoadResult[], LoadResult[]] = [[], []];
  const { job } = scenario;
  const slice: LoadJob = { ...job, measureMs: SLICE_MS };
  for (const subject of subjects) await awaitFirstAnswer(subject);
  for (const subject of subjects) await warmUp(subject, job, WARM_UP_UNITS);
  for (let round = 0; round < rounds; round++) {
    // ABBA within a pair, and the next pair the other way round: what drifts hits both alike.
    const order = (pair + round) % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const);
    for (const which of order) figures[which].push(await runLoad(slice, subjects[which]));
  }
  for (const subject of subjects) await stopSubject(subject);
  return figures;
}

/** B with everything that it tells going to a process of its own. */
async function withTelemetry({ gateways: [a, b], ...comparison }: Comparison): Promise<Comparison> {
  const endpoint = `http://127.0.0.1:${await readFirstLine(startHelper("otlp-sink.ts"))}`;
  const settings = { ...b.settings, telemetry: { otlp: { endpoint } } };
  return { ...comparison, gateways: [a, { ...b, settings }] };
}

async function compare(asked: Comparison, temporaryFolder: string): Promise<void> {
  const comparison = asked.telemetry ? await withTelemetry(asked) : asked;
  const { gateways, metric, scenario, pairs, rounds } = comparison;
  const upstream = await startUpstream();
  const surroundings = { upstreamPort: upstream.port, temporaryFolder, models: ALL_MODELS };
  const all: [LoadResult[], LoadResult[]] = [[], []];
  const ratios: number[] = [];
  console.log(`${scenario.title}: ${metric.title} (${metric.unit})`);
  gateways.forEach(({ tree }, which) => {
    console.log(`${"AB"[which]}: ${tree}`);
  });
  for (let pair = 1; pair <= pairs; pair++) {
    const figures = await measurePair(comparison, pair, surroundings);
    const [a, b] = figures.map((results) => results.map(metric.read)) as [number[], number[]];
    const ratio = median(b.map((value, round) => value / a[round]!));
    ratios.push(ratio);
    all[0].push(...figures[0]);
    all[1].push(...figures[1]);
    console.log(`pair ${pair}: A ${median(a).toFixed(1)}, B ${median(b).toFixed(1)}, B/A ${ratio.toFixed(3)}`);
  }
  const best = all.map((results) => Math.min(...results.map(metric.read))) as [number, number];
  all.forEach((results, which) => {
    const middle = median(results.map(metric.read)).toFixed(1);
    const threads = threadShares(metric, results);
    console.log(`${"AB"[which]}: median ${middle}, best ${best[which]!.toFixed(1)}; ${threads}`);
  });
  const [lowest, highest] = [Math.min(...ratios), Math.max(...ratios)].map((value) => value.toFixed(3));
  const inAll = `of ${pairs} pairs of ${rounds} rounds; best to best ${(best[1] / best[0]).toFixed(3)}`;
  console.log(`B/A: median ${median(ratios).toFixed(3)} (${lowest} to ${highest}) ${inAll}`);
  await upstream.stop();
}

await runBenchmark(readComparison, () => RUN_LIMIT_MS, compare);
