// sh bin/bun bench/workers.ts: what several processes on one port give and cost: requests per second, CPU per request, and
// memory of each process. The load generator and the model server need cores, too: the figures say for how many they are.

import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { median } from "./figures.ts";
import type { LoadResult } from "./load.ts";
import { runLoad, warmUp } from "./measure.ts";
import { childrenOf, residentBytes } from "./processes.ts";
import { runBenchmark } from "./program.ts";
import { ALL_MODELS, LOAD_SCENARIOS, type LoadScenario } from "./scenarios.ts";
import {
  awaitFirstAnswer,
  type Subject,
  type Surroundings,
  startSubject,
  startUpstream,
  stopSubject,
} from "./subjects.ts";

const SCENARIO_NAMES = ["plain", "prompt", "stream"];
const SLICE_MS = 2_000;
const WARM_UP_UNITS = 50_000;
const SETTLE_MS = 1_000;
const RUN_LIMIT_MS = 20 * 60_000;
const MEGABYTE = 1024 * 1024;

const HELP = `Usage: sh bin/bun bench/workers.ts [options]

  --workers <list>  numbers of workers; default 1,2
  --rounds <n>      slices of ${SLICE_MS / 1000} s for each number, in turns; default 5
  --scenario <name> ${SCENARIO_NAMES.join(", ")}; default all of them
  --help            print this text

1 is the gateway without workers. With others there is a primary besides them.
`;

interface Options {
  counts: number[];
  rounds: number;
  scenarios: LoadScenario[];
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      workers: { type: "string", default: "1,2" },
      rounds: { type: "string", default: "5" },
      scenario: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    process.exit(0);
  }
  const names = values.scenario === undefined ? SCENARIO_NAMES : [values.scenario];
  const scenarios = LOAD_SCENARIOS.filter(({ name }) => names.includes(name));
  if (scenarios.length !== names.length) throw new Error(`--scenario: unknown scenario\n\n${HELP}`);
  return { counts: values.workers.split(",").map(Number), rounds: Number(values.rounds), scenarios };
}

const cpuEach = (result: LoadResult) => result.cpuMicroseconds / Math.max(result.requests, result.chunks);

async function measure({ counts, rounds, scenarios }: Options, temporaryFolder: string): Promise<void> {
  const upstream = await startUpstream();
  const surroundings: Surroundings = { upstreamPort: upstream.port, temporaryFolder, models: ALL_MODELS };
  console.log(`${availableParallelism()} cores, which the load generator and the model server share with the gateway`);
  for (const scenario of scenarios) await measureScenario(scenario, counts, rounds, surroundings);
  await upstream.stop();
}

async function measureScenario(
  { title, job }: LoadScenario,
  counts: readonly number[],
  rounds: number,
  surroundings: Surroundings,
): Promise<void> {
  console.log(`\n${title}`);
  const subjects = counts.map((workers) =>
    startSubject("signalbox", surroundings, { settings: { server: { workers } } }),
  );
  for (const subject of subjects) await awaitFirstAnswer(subject);
  await Bun.sleep(SETTLE_MS);
  const idle = subjects.map(memoryOf);
  for (const subject of subjects) await warmUp(subject, job, WARM_UP_UNITS);
  const results: LoadResult[][] = counts.map(() => []);
  for (let round = 0; round < rounds; round++) {
    // There and back: what drifts hits all alike.
    const order = [...counts.keys()];
    for (const which of round % 2 === 0 ? order : order.reverse()) {
      results[which]?.push(await runLoad({ ...job, measureMs: SLICE_MS }, subjects[which] as Subject));
    }
  }
  for (const [which, workers] of counts.entries()) {
    const of = results[which] as LoadResult[];
    const perSecond = median(of.map(({ requests, chunks, seconds }) => Math.max(requests, chunks) / seconds));
    const latency = median(of.map(({ latencyMs }) => latencyMs.p50));
    console.log(
      `  workers ${workers}: ${perSecond.toFixed(0)} ${of[0]?.chunks ? "chunks" : "requests"}/s, ` +
        `CPU ${median(of.map(cpuEach)).toFixed(1)} µs each, median ${latency.toFixed(2)} ms; ` +
        `memory idle ${idle[which]}, after ${memoryOf(subjects[which] as Subject)}`,
    );
  }
  for (const subject of subjects) await stopSubject(subject);
}

/** Of the process that was started, and of each worker. */
function memoryOf({ running }: Subject): string {
  if (running === undefined) return "";
  const { pid } = running.child;
  const pids = [pid, ...childrenOf(pid)];
  return `${pids.map((each) => (residentBytes([each]) / MEGABYTE).toFixed(0)).join(" + ")} MB`;
}

await runBenchmark(readOptions, () => RUN_LIMIT_MS, measure);
