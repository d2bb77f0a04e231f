// The parts of a run and the rows of the table that each gives.

import type { LoadJob, LoadResult } from "./load.ts";
import {
  measureColdStarts,
  measureLoad,
  measureMemory,
  type Progress,
  type Rounds,
  runLoad,
  warmUp,
} from "./measure.ts";
import { PACED, PACED_SUBJECTS, pacedRows } from "./paced.ts";
import { loadRows, makeRow, type Row } from "./report.ts";
import {
  COLD_START_TARGET_SECONDS,
  COLUMNS,
  type GatewayParts,
  IDLE_MEMORY_TARGET_MEGABYTES,
  LOAD_SCENARIOS,
  type LoadScenario,
  OPEN_STREAM_TARGET_KILOBYTES,
  OPEN_STREAMS,
  subjectsOf,
  WARM_UP,
} from "./scenarios.ts";
import {
  awaitFirstAnswer,
  SUBJECT_TITLES,
  type Subject,
  type SubjectName,
  type Surroundings,
  startSubject,
  stopSubject,
} from "./subjects.ts";
import { TAILS, tailRows } from "./tails.ts";

const MEMORY = "memory";
const COLD_START = "cold-start";

export const PART_NAMES: readonly string[] = [
  ...new Set(LOAD_SCENARIOS.map(({ name }) => name)),
  PACED,
  TAILS,
  MEMORY,
  COLD_START,
];

/** Parts that are measured only where they are named: peers are large to install, and tails take long. */
const ON_REQUEST: readonly string[] = ["peers", TAILS];
export const USUAL_PARTS: readonly string[] = PART_NAMES.filter((name) => !ON_REQUEST.includes(name));

/** All subjects that are measured in one of the parts, in the order of the ladder. */
export function subjectsOfParts(parts: ReadonlySet<string>): SubjectName[] {
  const scenarios = LOAD_SCENARIOS.filter(({ name }) => parts.has(name));
  const paced = parts.has(PACED) ? PACED_SUBJECTS : [];
  const measured = new Set([...COLUMNS, ...paced, ...scenarios.flatMap(subjectsOf)]);
  return (Object.keys(SUBJECT_TITLES) as SubjectName[]).filter((name) => measured.has(name));
}

/** Requests or chunks. */
const GATEWAY_WARM_UP_UNITS = 200_000;
const PAIR_WARM_UP_UNITS = 30_000;
/** A round of it takes four minutes. */
const MOST_PACED_ROUNDS = 2;

export interface Run {
  parts: ReadonlySet<string>;
  quick: boolean;
  rounds: number;
  names: readonly SubjectName[];
  surroundings: Surroundings;
  progress: Progress;
}

/** At equal rates; nothing where it is not asked for or nginx is not here. */
export async function runPaced(run: Run): Promise<Row[]> {
  if (!run.parts.has(PACED)) return [];
  const subjects = PACED_SUBJECTS.filter((name) => run.names.includes(name));
  return await pacedRows({ ...run, subjects, rounds: run.quick ? 1 : Math.min(run.rounds, MOST_PACED_ROUNDS) });
}

/** Cold starts and memory come first, while nothing else of ours is running. */
export async function runParts(run: Run): Promise<Row[]> {
  const coldStarts = run.parts.has(COLD_START) ? await coldStartRows(run) : [];
  const memory = run.parts.has(MEMORY) ? await memoryRows(run) : [];
  const load = await loadPartRows(run);
  const tails = run.parts.has(TAILS) ? await tailRows(run) : [];
  return [...load, ...tails, ...memory, ...coldStarts];
}

async function loadPartRows(run: Run): Promise<Row[]> {
  const scenarios = LOAD_SCENARIOS.filter(({ name }) => run.parts.has(name));
  if (scenarios.length === 0) return [];
  const subjects = run.names.map((name) => startSubject(name, run.surroundings));
  for (const subject of subjects) await awaitFirstAnswer(subject);
  for (const subject of subjects) await runLoad(WARM_UP, subject);

  const rows: Row[] = [];
  const highest: Row["rounds"] = {};
  for (const scenario of scenarios) {
    const sized = run.quick ? shorten(scenario) : scenario;
    const measured: readonly string[] = subjectsOf(scenario);
    const usual = subjects.filter(({ name }) => measured.includes(name));
    const results =
      scenario.comparedWith === undefined
        ? await withOwnGateway(scenario, usual, run.surroundings, async (taking) => {
            if (!run.quick && hasTarget(scenario)) await warmUpGateways(sized, taking);
            return measureLoad(sized, taking, run.rounds, run.progress);
          })
        : await measurePairs(sized, scenario.comparedWith, run);
    rows.push(...loadRows(scenario, results));
    for (const [name, figures] of results) {
      if (name !== "direct" && name !== "passed")
        highest[name] = [Math.max(...(highest[name] ?? []), highestMegabytes(figures))];
    }
  }
  for (const subject of subjects) await stopSubject(subject);
  const section = "memory (RSS) under the loads above";
  return [...rows, makeRow({ section, title: "highest", unit: "MB", digits: 1, show: "value", rounds: highest })];
}

function highestMegabytes(results: readonly LoadResult[]): number {
  return Math.max(...results.map(({ residentBytes }) => residentBytes.highest)) / 1e6;
}

/** What has a target is measured on processes that have long been running, as gateways are. */
function hasTarget({ metrics }: LoadScenario): boolean {
  return metrics.some(({ target }) => target?.of === "ratio");
}

async function warmUpGateways({ job, passedThrough }: LoadScenario, subjects: readonly Subject[]): Promise<void> {
  for (const subject of subjects) {
    if (subject.name === "passed") await warmUp(subject, passedThrough ?? job, GATEWAY_WARM_UP_UNITS);
    else if (subject.name.startsWith("signalbox")) await warmUp(subject, job, GATEWAY_WARM_UP_UNITS);
  }
}

/** A scenario with a configuration of its own is measured on a gateway of its own. */
async function withOwnGateway<Result>(
  { gateway, job, passedThrough }: LoadScenario,
  subjects: readonly Subject[],
  surroundings: Surroundings,
  measure: (subjects: readonly Subject[]) => Promise<Result>,
): Promise<Result> {
  if (!gateway) return measure(subjects);
  const own = startSubject("signalbox", surroundings, gateway);
  const usual = subjects.find(({ name }) => name === own.name)!;
  await awaitFirstAnswer(own);
  let taking = subjects.map((subject) => (subject === usual ? own : subject));
  if (passedThrough) {
    const passed: Subject = { ...usual, name: "passed" };
    taking = [passed, own];
    await runLoad(passedThrough, passed);
    await runLoad({ ...job, measureMs: WARM_UP.measureMs }, own);
  } else await runLoad(WARM_UP, own);
  const result = await measure(taking);
  await stopSubject(own);
  return result;
}

const TURNS_PER_PAIR = 3;

/** Pairs of new processes, one pair per round; every turn of a pair gives a figure. */
async function measurePairs(
  scenario: LoadScenario,
  comparedWith: GatewayParts,
  { rounds, surroundings, progress }: Run,
): Promise<Rounds<LoadResult>> {
  const results: Rounds<LoadResult> = new Map();
  for (let round = 1; round <= rounds; round++) {
    const other: Subject = { ...startSubject("signalbox", surroundings, comparedWith), name: "passed" };
    const own = startSubject("signalbox", surroundings, scenario.gateway);
    const pair = round % 2 === 1 ? [other, own] : [own, other];
    for (const subject of pair) await awaitFirstAnswer(subject);
    for (const subject of pair) await warmUp(subject, scenario.job, PAIR_WARM_UP_UNITS);
    for (const [name, figures] of await measureLoad(scenario, pair, TURNS_PER_PAIR, progress)) {
      results.set(name, [...(results.get(name) ?? []), ...figures]);
    }
    for (const subject of pair) await stopSubject(subject);
  }
  return results;
}

/** The same scenario with half the measuring time. */
function shorten(scenario: LoadScenario): LoadScenario {
  const half = (job: LoadJob): LoadJob => ({ ...job, measureMs: job.measureMs / 2 });
  const { job, passedThrough } = scenario;
  return { ...scenario, job: half(job), ...(passedThrough && { passedThrough: half(passedThrough) }) };
}

async function memoryRows({ names, surroundings, progress }: Run): Promise<Row[]> {
  const idle: Row["rounds"] = {};
  const perStream: Row["rounds"] = {};
  const perChunk: Row["rounds"] = {};
  for (const name of names) {
    if (name === "direct" || !COLUMNS.includes(name)) continue;
    const memory = await measureMemory(name, surroundings, progress);
    idle[name] = [memory.idleBytes / 1e6];
    perStream[name] = [memory.openStreamBytes / 1000];
    perChunk[name] = [memory.cpuPerChunkMicroseconds];
  }
  const common = {
    section: `memory (RSS) of a fresh process, then with ${OPEN_STREAMS} open streams, one chunk every 0.5 s each`,
    show: "value",
    digits: 1,
  } as const;
  return [
    makeRow({
      ...common,
      title: "idle after the first answer",
      unit: "MB",
      rounds: idle,
      target: { of: "value", limit: IDLE_MEMORY_TARGET_MEGABYTES },
    }),
    makeRow({
      ...common,
      title: "per open stream",
      unit: "KB",
      rounds: perStream,
      target: { of: "value", limit: OPEN_STREAM_TARGET_KILOBYTES },
    }),
    makeRow({ ...common, title: "CPU per slow chunk", unit: "µs", rounds: perChunk }),
  ];
}

async function coldStartRows({ quick, surroundings, progress }: Run): Promise<Row[]> {
  const seconds = await measureColdStarts(surroundings, quick ? 3 : 5, progress);
  const common = {
    section: "cold start: from the command to the first chat answer",
    unit: "s",
    digits: 3,
    show: "value",
    target: { of: "value", limit: COLD_START_TARGET_SECONDS },
  } as const;
  return [
    makeRow({ ...common, title: "zero configuration", rounds: { signalbox: seconds.zeroConfigurationSeconds } }),
    makeRow({
      ...common,
      title: "configuration file",
      rounds: { bare: seconds.bareSeconds, signalbox: seconds.configurationFileSeconds },
    }),
  ];
}
