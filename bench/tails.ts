// How long the slowest answers take at half of what a gateway can do: what is added to the backend alone, by percentile.

import type { LoadJob, LoadResult, Percentiles } from "./load.ts";
import { type Progress, runLoad, warmUp } from "./measure.ts";
import { makeRow, type Row } from "./report.ts";
import { LOAD_SCENARIOS } from "./scenarios.ts";
import { awaitFirstAnswer, type SubjectName, type Surroundings, startSubject, stopSubject } from "./subjects.ts";

export const TAILS = "tails";
export const TAIL_SUBJECTS: readonly SubjectName[] = ["direct", "nginx", "signalbox"];

/** Part of the highest rate of Signalbox. */
const SHARE = 0.5;
const WARM_UP_UNITS = 100_000;
const SATURATION_MS = 3_000;
/** Connections that are opened and never used are closed after twelve seconds (by the runtime). */
const LONGEST_MS = 9_000;
const PERCENTILES = ["p50", "p99", "p999"] as const satisfies readonly (keyof Percentiles)[];
const TITLES: Record<(typeof PERCENTILES)[number], string> = { p50: "p50", p99: "p99", p999: "p99.9" };

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
  const taking = TAIL_SUBJECTS.filter((name) => names.includes(name));
  const subjects = taking.map((name) => startSubject(name, surroundings));
  for (const subject of subjects) await awaitFirstAnswer(subject);
  const gateway = subjects.at(-1);
  if (gateway?.name !== "signalbox") throw new Error("the rates of the tails are those of Signalbox");
  const rows: Row[] = [];
  for (const { scenario, title, connections, read } of TIMED) {
    const { job } = LOAD_SCENARIOS.find(({ name }) => name === scenario)!;
    const unpaced: LoadJob = { ...job, pattern: { kind: "closed", connections }, warmUpMs: 0 };
    for (const subject of subjects) await warmUp(subject, unpaced, quick ? WARM_UP_UNITS / 10 : WARM_UP_UNITS);
    const { requests, seconds } = await runLoad({ ...unpaced, measureMs: SATURATION_MS }, gateway);
    const perSecond = Math.round((requests / seconds) * SHARE);
    const paced: LoadJob = {
      ...job,
      pattern: { kind: "paced", perSecond, connections },
      warmUpMs: 1_000,
      measureMs: quick ? 4_000 : LONGEST_MS,
    };
    const results: Partial<Record<SubjectName, Percentiles[]>> = {};
    for (let round = 0; round < rounds; round++) {
      for (const [place, subject] of subjects.entries()) {
        const result = await runLoad(paced, subject);
        const name = taking[place] as SubjectName;
        results[name] = [...(results[name] ?? []), read(result)];
        const told = PERCENTILES.map((each) => `${TITLES[each]} ${read(result)[each].toFixed(2)}`).join(", ");
        progress(`tails ${title}, ${perSecond}/s ${name}: ${told} ms of ${result.requests} answers`);
      }
    }
    for (const each of PERCENTILES) {
      const figures = Object.entries(results).map(([name, all]) => [name, all.map((of) => of[each])]);
      rows.push(
        makeRow({
          section: `${title} at ${perSecond.toLocaleString("en")}/s, half of the highest rate`,
          title: `added ${TITLES[each]}`,
          unit: "ms",
          digits: 2,
          show: "added",
          rounds: Object.fromEntries(figures),
        }),
      );
    }
  }
  for (const subject of subjects) await stopSubject(subject);
  return rows;
}
