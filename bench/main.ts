// npm run bench: measures nginx, what every layer costs on this runtime, Signalbox and peers side by side in one run.
// A missed target never fails the run; a wrong or missing answer does, because figures with errors mean nothing.

import { cpus, release } from "node:os";
import { parseArgs } from "node:util";
import { spreadOf } from "./figures.ts";
import { formatLadders } from "./ladder.ts";
import { PACED_SUBJECTS } from "./paced.ts";
import { PART_NAMES, type Run, runPaced, runParts, subjectsOfParts, USUAL_PARTS } from "./parts.ts";
import { runBenchmark } from "./program.ts";
import { formatTable, type Row } from "./report.ts";
import { ALL_MODELS, COLUMNS } from "./scenarios.ts";
import { provideSubject, type SubjectName, startUpstream } from "./subjects.ts";

/** A round of everything takes between three and four minutes, everything else about three. */
const RUN_LIMIT_MS = { once: 15 * 60_000, perRound: 5 * 60_000 };
const DEFAULT_ROUNDS = 3;
/** Above this difference between rounds of nginx the machine was doing something else. */
const BUSY_SPREAD = 0.25;

const HELP = `Usage: npm run bench -- [options]

  --quick        one round, half the time each: for a first look
  --rounds <n>   rounds of every load; default ${DEFAULT_ROUNDS}
  --only <list>  only these, separated by commas: ${PART_NAMES.join(", ")};
                 peers and tails are measured only where they are named
  --json         print the result as one JSON object
  --help         print this text
`;

interface Options {
  quick: boolean;
  json: boolean;
  rounds: number;
  parts: ReadonlySet<string>;
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      quick: { type: "boolean", default: false },
      rounds: { type: "string" },
      only: { type: "string" },
      json: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    process.exit(0);
  }
  const parts = values.only?.split(",") ?? USUAL_PARTS;
  const unknown = parts.find((part) => !PART_NAMES.includes(part));
  if (unknown !== undefined) throw new Error(`--only: unknown part "${unknown}"; known are ${PART_NAMES.join(", ")}`);
  const rounds = Number(values.rounds ?? (values.quick ? 1 : DEFAULT_ROUNDS));
  if (!(Number.isInteger(rounds) && rounds >= 1 && rounds <= 20)) throw new Error("--rounds: a number from 1 to 20");
  return { quick: values.quick, json: values.json, rounds, parts: new Set(parts) };
}

async function measureAndPrint(options: Options, temporaryFolder: string): Promise<void> {
  const begun = performance.now();
  const upstream = await startUpstream();
  const names = await providedSubjects(options);
  const run: Run = {
    ...options,
    names,
    surroundings: { upstreamPort: upstream.port, temporaryFolder, models: ALL_MODELS },
    progress: (line) => process.stderr.write(`${line}\n`),
  };
  const rows = await runParts(run);
  const paced = await runPaced(run);
  await upstream.stop();
  const seconds = Math.round((performance.now() - begun) / 1000);
  const notes = describeMethod(options, rows, names.includes("nginx"));
  if (options.json) {
    console.log(JSON.stringify({ machine: describeMachine(), seconds, rows: [...rows, ...paced], notes }));
    return;
  }
  console.log(`\n${describeMachine()}; ${seconds} s\n`);
  console.log(
    formatTable(
      rows,
      COLUMNS.filter((name) => names.includes(name)),
    ),
  );
  if (paced.length > 0) {
    const shown = PACED_SUBJECTS.filter((name) => names.includes(name));
    console.log(
      `\nAt equal rates, in new processes (the ratio is that of Signalbox to nginx):\n\n${formatTable(paced, shown)}`,
    );
  }
  console.log(`\n${formatLadders(rows)}`);
  console.log(`\n${notes.join("\n")}`);
}

/** Who takes part, as far as they are here or can be installed. */
async function providedSubjects({ parts }: Options): Promise<SubjectName[]> {
  const names: SubjectName[] = [];
  for (const name of subjectsOfParts(parts)) {
    if (await provideSubject(name)) names.push(name);
  }
  return names;
}

function describeMachine(): string {
  const processors = cpus();
  const processor = processors[0]?.model.trim() ?? "unknown processor";
  return `${processor}, ${processors.length} cores, Linux ${release()}, Bun ${Bun.version}`;
}

function describeMethod({ quick, rounds }: Options, rows: readonly Row[], hasNginx: boolean): string[] {
  const spread = Math.max(
    0,
    ...rows.filter(({ unit }) => unit === "µs").map((row) => spreadOf(row.rounds.nginx ?? [])),
  );
  return [
    ...(quick ? ["--quick: one short round; figures jump by a quarter from run to run."] : []),
    `Load: median of ${rounds === 1 ? "1 round" : `${rounds} interleaved rounds`}; ratios and differences are taken within a round.`,
    "In brackets: the best round.",
    "Memory of a fresh process: measured once. Cold start: median of several, with a warm page cache.",
    "CPU: time of all threads of the process (/proc/<pid>/task/*/schedstat) over the measured time. What has a target is measured after",
    "200,000 requests or chunks (20 s at most): the runtime compiles code again, and better, the longer it runs.",
    "Memory: VmRSS, executable pages included. Load generator and upstream are processes of their own on raw sockets.",
    "Signalbox: the real command with a configuration file and default settings, access log on, stderr to /dev/null.",
    hasNginx
      ? "nginx: one worker, upstream keep-alive, proxy_buffering off, access log off."
      : "nginx is not here: the limit and the ratios to it are missing from this run.",
    "Ratios: to nginx; of translated answers to those that the usual Signalbox passes through, in the same rounds;",
    "of two configurations, the other one being that after the semicolon: in pairs of new processes, one per round.",
    "Requests per second share the cores with load generator and upstream: compare CPU per request instead.",
    ...(spread > BUSY_SPREAD
      ? [`The machine was busy: nginx's own CPU figures differ by up to ${Math.round(spread * 100)} % between rounds.`]
      : []),
  ];
}

await runBenchmark(readOptions, ({ rounds }) => RUN_LIMIT_MS.once + rounds * RUN_LIMIT_MS.perRound, measureAndPrint);
