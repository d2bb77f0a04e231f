// The measurements themselves: load in interleaved rounds, memory of open streams, cold start.

import type { AimedLoadJob, LoadJob, LoadOutput, LoadResult } from "./load.ts";
import { endProcess, residentBytes, within } from "./processes.ts";
import { type LoadScenario, MEMORY_WARM_UP, OPEN_STREAMS, OPEN_STREAMS_JOB } from "./scenarios.ts";
import {
  awaitFirstAnswer,
  firstModelOf,
  type MeasuredName,
  pidsOf,
  type Subject,
  type SubjectName,
  type Surroundings,
  startHelper,
  startSubject,
  startZeroConfiguration,
  stopSubject,
} from "./subjects.ts";

const SETTLE_MS = 1000;
const JOB_SLACK_MS = 20_000;

export type Progress = (line: string) => void;

/** One figure per round for each subject that took part. */
export type Rounds<Figure> = Map<MeasuredName, Figure[]>;

export interface MemoryResult {
  idleBytes: number;
  openStreamBytes: number;
  cpuPerChunkMicroseconds: number;
}

/** Runs one job against one subject in a process of its own; the CPU time and memory are those of `pids`. */
export async function runLoad(job: LoadJob, subject: Subject, pids = pidsOf(subject)): Promise<LoadResult> {
  const { port, headers } = subject;
  const aimed: AimedLoadJob = { ...job, port, ...(headers && { headers }), pids };
  const child = startHelper("load.ts", JSON.stringify(aimed));
  const limitMs = job.warmUpMs + job.measureMs + JOB_SLACK_MS;
  const text = await within(limitMs, new Response(child.stdout as ReadableStream<Uint8Array>).text());
  if (!text) {
    await endProcess(child);
    throw new Error(`the load on ${subject.name} gave no result within ${limitMs / 1000} s`);
  }
  const output = JSON.parse(text) as LoadOutput;
  if ("error" in output) throw new Error(`${subject.name}: ${output.error}`);
  if (output.result.requests === 0 && output.result.chunks === 0)
    throw new Error(`${subject.name} answered nothing in the measured time`);
  return output.result;
}

const WARM_UP_SLICE_MS = 2000;
const WARM_UP_LIMIT_MS = 20_000;

/**
 * Runs a job until so many requests or chunks have passed, or for 20 s: code that runs is compiled several times over, each
 * time better, and the last time after some hundred thousand.
 */
export async function warmUp(subject: Subject, job: LoadJob, units: number): Promise<void> {
  let done = 0;
  for (let spentMs = 0; done < units && spentMs < WARM_UP_LIMIT_MS; spentMs += WARM_UP_SLICE_MS) {
    const { requests, chunks } = await runLoad({ ...job, warmUpMs: 0, measureMs: WARM_UP_SLICE_MS }, subject);
    done += Math.max(requests, chunks);
  }
}

/**
 * All subjects run side by side and are loaded in turn, round after round, so that a noisy moment of the machine
 * hits all of them and not one.
 */
export async function measureLoad(
  scenario: LoadScenario,
  subjects: readonly Subject[],
  rounds: number,
  progress: Progress,
): Promise<Rounds<LoadResult>> {
  const results: Rounds<LoadResult> = new Map(subjects.map(({ name }) => [name, []]));
  const comparedWithDirect = scenario.metrics.some(({ show }) => show === "added");
  if (scenario.subjects) {
    // What is looked at thread by thread should not be compiling.
    for (const subject of subjects) await runLoad(scenario.job, subject);
  }
  for (let round = 1; round <= rounds; round++) {
    for (const subject of subjects) {
      if (subject.name === "direct" && round > 1 && !comparedWithDirect) continue;
      const job = (subject.name === "passed" && scenario.passedThrough) || scenario.job;
      const result = await runLoad(job, subject);
      results.get(subject.name)!.push(result);
      progress(`${scenario.name} ${round}/${rounds} ${subject.name}: ${describe(scenario, subject.name, result)}`);
    }
  }
  return results;
}

function describe(scenario: LoadScenario, subject: MeasuredName, result: LoadResult): string {
  return scenario.metrics
    .filter((metric) => !(metric.withoutDirect && subject === "direct"))
    .map(
      (metric) => `${metric.title.replace("added ", "")} ${metric.read(result).toFixed(metric.digits)} ${metric.unit}`,
    )
    .join(", ");
}

/** Idle and per-stream memory, each in a fresh process, because garbage of earlier load would hide in it. */
export async function measureMemory(
  name: SubjectName,
  surroundings: Surroundings,
  progress: Progress,
): Promise<MemoryResult> {
  const subject = startSubject(name, surroundings);
  try {
    await awaitFirstAnswer(subject);
    await Bun.sleep(SETTLE_MS);
    const idleBytes = residentBytes(pidsOf(subject));
    await runLoad(MEMORY_WARM_UP, subject);
    await Bun.sleep(SETTLE_MS);
    const before = residentBytes(pidsOf(subject));
    const result = await runLoad(OPEN_STREAMS_JOB, subject);
    if (result.fewestOpen < OPEN_STREAMS) throw new Error(`${name}: only ${result.fewestOpen} streams were open`);
    const memory = {
      idleBytes,
      openStreamBytes: (result.residentBytes.median - before) / OPEN_STREAMS,
      cpuPerChunkMicroseconds: result.cpuMicroseconds / result.chunks,
    };
    progress(
      `memory ${name}: idle ${(idleBytes / 1e6).toFixed(1)} MB, before ${(before / 1e6).toFixed(1)} MB, ` +
        `${(memory.openStreamBytes / 1000).toFixed(1)} KB per open stream`,
    );
    return memory;
  } finally {
    await stopSubject(subject);
  }
}

export interface ColdStarts {
  zeroConfigurationSeconds: number[];
  configurationFileSeconds: number[];
  bareSeconds: number[];
}

/** From the start of the command to the first successful chat answer. */
export async function measureColdStarts(
  surroundings: Surroundings,
  times: number,
  progress: Progress,
): Promise<ColdStarts> {
  // The first start also learns the demo model's name, and fills the page cache.
  const first = startZeroConfiguration(surroundings);
  let demoModel: string;
  try {
    demoModel = await firstModelOf(first);
  } finally {
    await stopSubject(first);
  }
  const seconds: ColdStarts = { zeroConfigurationSeconds: [], configurationFileSeconds: [], bareSeconds: [] };
  for (let time = 1; time <= times; time++) {
    seconds.bareSeconds.push(await timeStart(() => startSubject("bare", surroundings)));
    seconds.zeroConfigurationSeconds.push(await timeStart(() => startZeroConfiguration(surroundings), demoModel));
    seconds.configurationFileSeconds.push(await timeStart(() => startSubject("signalbox", surroundings)));
  }
  progress(
    `cold start: bare ${list(seconds.bareSeconds)}; zero configuration ${list(seconds.zeroConfigurationSeconds)}; ` +
      `configuration file ${list(seconds.configurationFileSeconds)}`,
  );
  return seconds;
}

async function timeStart(start: () => Subject, model?: string): Promise<number> {
  const from = performance.now();
  const subject = start();
  try {
    await awaitFirstAnswer(subject, model);
    return (performance.now() - from) / 1000;
  } finally {
    await stopSubject(subject);
  }
}

function list(seconds: readonly number[]): string {
  return seconds.map((value) => value.toFixed(3)).join(" ");
}
