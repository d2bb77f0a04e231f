// npm run bench: measures direct, nginx, a bare relay and Signalbox side by side in one run, and prints one table.
// A missed target never fails the run; a wrong or missing answer does, because figures with errors mean nothing.

import { mkdtempSync, rmSync } from "node:fs";
import { cpus, release, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type MemoryResult, measureColdStarts, measureLoad, measureMemory, type Progress, runLoad } from "./measure.ts";
import { endAllProcesses } from "./processes.ts";
import { formatTable, loadRows, makeRow, type Row } from "./report.ts";
import {
  COLD_START_TARGET_SECONDS,
  IDLE_MEMORY_TARGET_MEGABYTES,
  LOAD_SCENARIOS,
  type LoadScenario,
  MEMORY_WARM_UP,
  OPEN_STREAM_TARGET_KILOBYTES,
  OPEN_STREAMS,
  OPEN_STREAMS_JOB,
  WARM_UP,
} from "./scenarios.ts";
import {
  awaitFirstAnswer,
  nginxInstalled,
  type Subject,
  type SubjectName,
  type Surroundings,
  startSubject,
  startUpstream,
  stopSubject,
} from "./subjects.ts";
import { modelFor } from "./wire.ts";

const RUN_LIMIT_MS = 10 * 60_000;
const MEMORY = "memory";
const COLD_START = "cold-start";
const PARTS = [...LOAD_SCENARIOS.map(({ name }) => name), MEMORY, COLD_START];

const HELP = `Usage: npm run bench -- [options]

  --quick        one round, short times: for a first look
  --only <list>  only these, separated by commas: ${PARTS.join(", ")}
  --json         print the result as one JSON object
  --help         print this text
`;

interface Options {
  quick: boolean;
  json: boolean;
  parts: ReadonlySet<string>;
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    process.exit(0);
  }
  const parts = values.only?.split(",") ?? PARTS;
  const unknown = parts.find((part) => !PARTS.includes(part));
  if (unknown !== undefined) throw new Error(`--only: unknown part "${unknown}"; known are ${PARTS.join(", ")}`);
  return { quick: values.quick, json: values.json, parts: new Set(parts) };
}

/** The same scenario with half the measuring time. */
function shorten(scenario: LoadScenario): LoadScenario {
  return { ...scenario, job: { ...scenario.job, measureMs: scenario.job.measureMs / 2 } };
}

async function measureAll(options: Options, surroundings: Surroundings, progress: Progress): Promise<Row[]> {
  const names: SubjectName[] = ["direct", ...(nginxInstalled() ? (["nginx"] as const) : []), "bare", "signalbox"];
  const rows: Row[] = [];
  const scenarios = LOAD_SCENARIOS.filter(({ name }) => options.parts.has(name));
  const highestUnderLoad = new Map<SubjectName, number>();

  let coldStartRows: Row[] = [];
  if (options.parts.has(COLD_START)) {
    const seconds = await measureColdStarts(surroundings, options.quick ? 3 : 5, progress);
    const common = {
      section: "cold start: from the command to the first chat answer",
      unit: "s",
      digits: 3,
      show: "value",
      target: { of: "value", limit: COLD_START_TARGET_SECONDS },
    } as const;
    coldStartRows = [
      makeRow({ ...common, title: "zero configuration", rounds: { signalbox: seconds.zeroConfigurationSeconds } }),
      makeRow({
        ...common,
        title: "configuration file",
        rounds: { bare: seconds.bareSeconds, signalbox: seconds.configurationFileSeconds },
      }),
    ];
  }

  const memory = new Map<SubjectName, MemoryResult>();
  if (options.parts.has(MEMORY)) {
    for (const name of names) {
      if (name !== "direct") memory.set(name, await measureMemory(name, surroundings, progress));
    }
  }

  const running: Subject[] = [];
  if (scenarios.length > 0) {
    for (const name of names) running.push(startSubject(name, surroundings));
    for (const subject of running) await awaitFirstAnswer(subject);
    for (const subject of running) await runLoad(WARM_UP, subject);
  }
  for (const scenario of scenarios) {
    const subjects = [...running];
    if (scenario.gatewaySettings) {
      const own = startSubject("signalbox", surroundings, scenario.gatewaySettings);
      await awaitFirstAnswer(own);
      subjects[subjects.findIndex(({ name }) => name === "signalbox")] = own;
    }
    const results = await measureLoad(
      options.quick ? shorten(scenario) : scenario,
      subjects,
      options.quick ? 1 : 3,
      progress,
    );
    rows.push(...loadRows(scenario, results));
    for (const [name, figures] of results) {
      const highest = Math.max(highestUnderLoad.get(name) ?? 0, ...figures.map((one) => one.residentBytes.highest));
      if (name !== "direct") highestUnderLoad.set(name, highest);
    }
    if (scenario.gatewaySettings) await stopSubject(subjects.find(({ name }) => name === "signalbox")!);
  }
  for (const subject of running) await stopSubject(subject);

  rows.push(...memoryRows(memory, highestUnderLoad), ...coldStartRows);
  return rows;
}

function memoryRows(memory: Map<SubjectName, MemoryResult>, highestUnderLoad: Map<SubjectName, number>): Row[] {
  const common = { section: "memory (RSS)", show: "value", digits: 1 } as const;
  const collect = <Figure>(from: Map<SubjectName, Figure>, read: (figure: Figure) => number): Row["rounds"] =>
    Object.fromEntries([...from].map(([name, figure]) => [name, [read(figure)]]));
  const rows: Row[] = [];
  if (memory.size > 0) {
    rows.push(
      makeRow({
        ...common,
        title: "idle after the first answer",
        unit: "MB",
        rounds: collect(memory, (figure) => figure.idleBytes / 1e6),
        target: { of: "value", limit: IDLE_MEMORY_TARGET_MEGABYTES },
      }),
    );
  }
  if (highestUnderLoad.size > 0) {
    rows.push(
      makeRow({
        ...common,
        title: "highest under the loads above",
        unit: "MB",
        rounds: collect(highestUnderLoad, (bytes) => bytes / 1e6),
      }),
    );
  }
  if (memory.size > 0) {
    rows.push(
      makeRow({
        ...common,
        title: `per open stream, ${OPEN_STREAMS} open`,
        unit: "KB",
        rounds: collect(memory, (figure) => figure.openStreamBytes / 1000),
        target: { of: "value", limit: OPEN_STREAM_TARGET_KILOBYTES },
      }),
      makeRow({
        ...common,
        title: `CPU per slow chunk, ${OPEN_STREAMS} open`,
        unit: "µs",
        rounds: collect(memory, (figure) => figure.cpuPerChunkMicroseconds),
      }),
    );
  }
  return rows;
}

function describeMachine(): string {
  const processors = cpus();
  return `${processors[0]?.model.trim() ?? "unknown processor"}, ${processors.length} cores, Linux ${release()}, Bun ${Bun.version}`;
}

function notes(): string[] {
  return [
    "Figures are medians over interleaved rounds; ratios and differences are taken within a round.",
    "CPU: time of all threads of the process (/proc/<pid>/task/*/schedstat) over the measured time, after a warm-up.",
    "Memory: VmRSS, executable pages included. Load generator and upstream are processes of their own on raw sockets.",
    "Signalbox: the real command with a configuration file and default settings, access log on, stderr to /dev/null.",
    nginxInstalled()
      ? "nginx: one worker, upstream keep-alive, proxy_buffering off, access log off."
      : "nginx is not installed here: the limit and the ratios to it are missing from this run.",
    "Saturated requests per second share the cores with load generator and upstream; compare CPU per request instead.",
  ];
}

async function main(): Promise<void> {
  const options = readOptions();
  if (process.platform !== "linux") throw new Error("the benchmark reads /proc and needs Linux");
  const progress: Progress = (line) => process.stderr.write(`${line}\n`);
  const temporaryFolder = mkdtempSync(join(tmpdir(), "signalbox-bench-"));
  const cleanUp = async () => {
    await endAllProcesses();
    rmSync(temporaryFolder, { recursive: true, force: true });
  };
  const giveUp = async (reason: string, code: number) => {
    console.error(`bench: ${reason}`);
    await cleanUp();
    process.exit(code);
  };
  process.once("SIGINT", () => void giveUp("interrupted", 130));
  process.once("SIGTERM", () => void giveUp("terminated", 143));
  const limit = setTimeout(() => void giveUp(`not done after ${RUN_LIMIT_MS / 60_000} minutes`, 1), RUN_LIMIT_MS);
  try {
    const upstream = await startUpstream();
    const models = [...LOAD_SCENARIOS.map(({ job }) => job), MEMORY_WARM_UP, OPEN_STREAMS_JOB].map(({ answer }) =>
      modelFor(answer),
    );
    const surroundings = { upstreamPort: upstream.port, temporaryFolder, models: [...new Set(models)] };
    const begun = performance.now();
    const rows = await measureAll(options, surroundings, progress);
    const seconds = Math.round((performance.now() - begun) / 1000);
    await upstream.stop();
    if (options.json) {
      console.log(JSON.stringify({ machine: describeMachine(), quick: options.quick, seconds, rows, notes: notes() }));
    } else {
      const names: SubjectName[] = ["direct", "nginx", "bare", "signalbox"];
      console.log(`\n${describeMachine()}; ${seconds} s${options.quick ? "; --quick: one short round" : ""}\n`);
      console.log(
        formatTable(
          rows,
          names.filter((name) => name !== "nginx" || nginxInstalled()),
        ),
      );
      console.log(`\n${notes().join("\n")}`);
    }
  } finally {
    clearTimeout(limit);
    await cleanUp();
  }
}

try {
  await main();
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
