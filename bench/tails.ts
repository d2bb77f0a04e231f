// How long the slowest answers take at half of what a gateway can do: what is added to the backend alone, by percentile.

import type { LoadJob, LoadResult, Percentiles } from "./load.ts";
import { measureLoad, type Progress, runLoad, warmUp } from "./measure.ts";
import { loadRows, type Row } from "./report.ts";
import { LOAD_SCENARIOS, type LoadScenario } from "./scenarios.ts";
import { awaitFirstAnswer, type SubjectName, type Surroundings, startSubject, stopSubject } from "./subjects.ts";

export const TAILS = "tails";
const TAIL_SUBJECTS: readonly SubjectName[] = ["direct", "nginx", "signalbox"];

/** Part of the highest rate of Signalbox. */
const SHARE = 0.5;
const WARM_UP_UNITS = 100_000;
const SATURATION_MS = 3_000;
/** The runtime closes connections on which nothing was sent after twelve seconds. */
const LONGEST_MS = 9_000;
const PERCENTILES = [
  ["p50", "p50"],
  ["p99", "p99"],
  ["p99.9", "p999"],
] as const satisfies readonly [string, keyof Percentiles][];

interface Timed {
  /** Whose requests are sent. */
  scenario: string;
  title: string;
  /** As many as keep a gateway busy all the time. */
  connections: number;
  read(result: LoadResult): Percentiles;
}

const TIMED: readonly Timed[] = [
  { scenario: "latency", title: "plain 1 KB answers", connections: 64, read: ({ latencyMs }) => latencyMs },
  {
    scenario: "first-chunk",
    title: "first chunks of streams of 10 chunks, one every 10 ms",
    connections: 1_000,
    read: ({ firstChunkMs }) => firstChunkMs,
  },
];

interface TailRun {
  names: readonly SubjectName[];
  quick: boolean;
  rounds: number;
  surroundings: Surroundings;
  progress: Progress;
}

/** A round takes a minute and a half, so that p99.9 is that of tens of thousands of answers. */
export async function tailRows({ names, quick, rounds, surroundings, progress }: TailRun): Promise<Row[]> {
  const subjects = TAIL_SUBJECTS.filter((name) => names.includes(name)).map((name) => startSubject(name, surroundings));
  for (const subject of subjects) await awaitFirstAnswer(subject);
  const gateway = subjects.find(({ name }) => name === "signalbox")!;
  const rows: Row[] = [];
  for (const { scenario, title, connections, read } of TIMED) {
    const { job } = LOAD_SCENARIOS.find(({ name }) => name === scenario)!;
    const unpaced: LoadJob = { ...job, pattern: { kind: "closed", connections }, warmUpMs: 0 };
    for (const subject of subjects) await warmUp(subject, unpaced, quick ? WARM_UP_UNITS / 10 : WARM_UP_UNITS);
    const { requests, seconds } = await runLoad({ ...unpaced, measureMs: SATURATION_MS }, gateway);
    const perSecond = Math.round((requests / seconds) * SHARE);
    const paced: LoadScenario = {
      name: TAILS,
      title: `${title} at ${perSecond.toLocaleString("en")}/s, half of the highest rate`,
      job: {
        ...job,
        pattern: { kind: "paced", perSecond, connections },
        warmUpMs: 1_000,
        measureMs: quick ? 4_000 : LONGEST_MS,
      },
      metrics: PERCENTILES.map(([name, key]) => ({
        title: `added ${name}`,
        unit: "ms",
        digits: 2,
        show: "added",
        read: (result) => read(result)[key],
      })),
    };
    rows.push(...loadRows(paced, await measureLoad(paced, subjects, rounds, progress)));
  }
  for (const subject of subjects) await stopSubject(subject);
  return rows;
}
