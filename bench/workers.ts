// sh bin/bun bench/workers.ts: what several processes on one port give and cost, beside nginx with as many: requests per second,
// CPU per request, memory of each process, and what the primary spends. From its share follows where more workers give no more.
// The load generator and the model server need cores, too: the figures say for how many they are.

import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { median } from "./figures.ts";
import type { LoadJob, LoadResult } from "./load.ts";
import { runLoad, warmUp } from "./measure.ts";
import { childrenOf, residentBytes } from "./processes.ts";
import { runBenchmark } from "./program.ts";
import { ALL_MODELS, LOAD_SCENARIOS, type LoadScenario } from "./scenarios.ts";
import {
  awaitFirstAnswer,
  provideSubject,
  type Subject,
  type Surroundings,
  startNginx,
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
/** Requests per second at which the primary is measured: from two rates follow its cost per request and that of its workers. */
const PRIMARY_RATES = [500, 4_000] as const;
const PRIMARY_MS = 4_000;
const CORES_OF_A_MACHINE = 32;

const HELP = `Usage: sh bin/bun bench/workers.ts [options]

  --workers <list>  numbers of workers; default 1,2,4
  --rounds <n>      slices of ${SLICE_MS / 1000} s for each number, in turns; default 5
  --scenario <name> ${SCENARIO_NAMES.join(", ")}; default all of them
  --help            print this text

1 is the gateway without workers. With others there is a primary besides them. Of the primary's CPU time the part that grows
with the requests and the part that is there without any are told apart by plain requests at two rates.
`;

interface Options {
  counts: number[];
  rounds: number;
  scenarios: LoadScenario[];
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      workers: { type: "string", default: "1,2,4" },
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

/** What is measured beside each other: the gateway or nginx, with so many workers. */
interface Contender {
  title: string;
  workers: number;
  subject: Subject;
}

const cpuEach = (result: LoadResult) => result.cpuMicroseconds / Math.max(result.requests, result.chunks);

async function measure({ counts, rounds, scenarios }: Options, temporaryFolder: string): Promise<void> {
  const hasNginx = await provideSubject("nginx");
  const upstream = await startUpstream();
  const surroundings: Surroundings = { upstreamPort: upstream.port, temporaryFolder, models: ALL_MODELS };
  console.log(`${availableParallelism()} cores, which the load generator and the model server share with the gateway`);
  for (const scenario of scenarios) await measureScenario(scenario, counts, rounds, surroundings, hasNginx);
  await measurePrimaries(counts, surroundings);
  await upstream.stop();
}

async function measureScenario(
  { title, job }: LoadScenario,
  counts: readonly number[],
  rounds: number,
  surroundings: Surroundings,
  hasNginx: boolean,
): Promise<void> {
  console.log(`\n${title}`);
  const contenders: Contender[] = counts.map((workers) => ({
    title: `Signalbox, workers ${workers}`,
    workers,
    subject: startGateway(workers, surroundings),
  }));
  for (const workers of hasNginx ? counts : []) {
    contenders.push({ title: `nginx, workers ${workers}`, workers, subject: startNginx(surroundings, workers) });
  }
  for (const { subject } of contenders) await awaitFirstAnswer(subject);
  await Bun.sleep(SETTLE_MS);
  const idle = contenders.map(({ subject }) => memoryOf(subject));
  // Each worker compiles for itself.
  for (const { subject, workers } of contenders) await warmUp(subject, job, WARM_UP_UNITS * workers);
  const results: LoadResult[][] = contenders.map(() => []);
  for (let round = 0; round < rounds; round++) {
    // There and back: what drifts hits all alike.
    const order = [...contenders.entries()];
    for (const [which, { subject }] of round % 2 === 0 ? order : order.reverse()) {
      results[which]!.push(await runLoad({ ...job, measureMs: SLICE_MS }, subject));
    }
  }
  for (const [which, { title: who, subject }] of contenders.entries()) {
    const of = results[which]!;
    const perSecond = median(of.map(({ requests, chunks, seconds }) => Math.max(requests, chunks) / seconds));
    const latency = median(of.map(({ latencyMs }) => latencyMs.p50));
    console.log(
      `  ${who}: ${perSecond.toFixed(0)} ${of[0]?.chunks ? "chunks" : "requests"}/s, ` +
        `CPU ${median(of.map(cpuEach)).toFixed(1)} µs each, median ${latency.toFixed(2)} ms; ` +
        `memory idle ${idle[which]}, after ${memoryOf(subject)}`,
    );
    await stopSubject(subject);
  }
}

/**
 * The primary spends `each` µs of CPU for a request and `standing` µs a second besides. It is full where both together are a second,
 * so more workers than answer that many requests give nothing; all processes of a machine together have the cores there are.
 */
async function measurePrimaries(counts: readonly number[], surroundings: Surroundings): Promise<void> {
  const { job } = LOAD_SCENARIOS.find(({ name }) => name === "plain")!;
  console.log("\nThe primary, plain requests");
  for (const workers of counts.filter((count) => count > 1)) {
    const subject = startGateway(workers, surroundings);
    await awaitFirstAnswer(subject);
    await warmUp(subject, job, WARM_UP_UNITS * workers);
    const primary = [subject.running!.child.pid];
    const full = await runLoad({ ...job, measureMs: PRIMARY_MS }, subject);
    const spent: number[] = [];
    for (const perSecond of PRIMARY_RATES) {
      const paced: LoadJob = { ...job, pattern: { kind: "paced", perSecond, connections: 32 }, measureMs: PRIMARY_MS };
      const { cpuMicroseconds, seconds } = await runLoad(paced, subject, primary);
      spent.push(cpuMicroseconds / seconds);
    }
    const atFull = await runLoad({ ...job, measureMs: PRIMARY_MS }, subject, primary);
    const [slow, fast] = spent as [number, number];
    const each = Math.max(0, fast - slow) / (PRIMARY_RATES[1] - PRIMARY_RATES[0]);
    const standing = Math.max(0, slow - each * PRIMARY_RATES[0]);
    const eachAtFull = cpuEach(atFull);
    const ofAll = cpuEach(full);
    const endsAt = (1e6 - standing) / eachAtFull;
    const onMachine = (CORES_OF_A_MACHINE * 1e6) / ofAll;
    console.log(
      `  workers ${workers}: ${eachAtFull.toFixed(1)} of ${ofAll.toFixed(1)} µs for a request at full load, ${each.toFixed(1)} at ` +
        `${PRIMARY_RATES.join(" and ")}/s, ${(standing / 1000).toFixed(1)} ms a second without any; full at ${hundreds(endsAt)}/s, ` +
        `where the workers use ${((endsAt * (ofAll - eachAtFull)) / 1e6).toFixed(1)} cores. ${CORES_OF_A_MACHINE} cores answer ` +
        `${hundreds(Math.min(endsAt, onMachine))}/s: the ${endsAt < onMachine ? "primary" : "cores"} end${endsAt < onMachine ? "s" : ""} it`,
    );
    await stopSubject(subject);
  }
}

const hundreds = (perSecond: number) => Math.round(perSecond / 100) * 100;

function startGateway(workers: number, surroundings: Surroundings): Subject {
  return startSubject("signalbox", surroundings, { settings: { server: { workers } } });
}

/** Of the process that was started, and of each worker. */
function memoryOf({ running }: Subject): string {
  if (running === undefined) return "";
  const { pid } = running.child;
  const pids = [pid, ...childrenOf(pid)];
  return `${pids.map((each) => (residentBytes([each]) / MEGABYTE).toFixed(0)).join(" + ")} MB`;
}

await runBenchmark(readOptions, () => RUN_LIMIT_MS, measure);
