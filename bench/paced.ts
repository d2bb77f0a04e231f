// What users pay: the same rate for everyone, far below the limit, user and system time apart, from the first second of a process on.

import type { LoadJob, LoadResult } from "./load.ts";
import { type Progress, runLoad, warmUp } from "./measure.ts";
import { makeRow, type Row } from "./report.ts";
import {
  awaitFirstAnswer,
  type Subject,
  type SubjectName,
  type Surroundings,
  startSubject,
  stopSubject,
} from "./subjects.ts";

export const PACED = "paced";
/** The relay between them does the leanest duties of a gateway (relays/main.ts). */
export const PACED_SUBJECTS: readonly SubjectName[] = ["nginx", "client-duties", "signalbox"];

const RATES: readonly number[] = [500, 2_000, 5_000];
const LATE_UNITS = 200_000;
const EARLY_UNITS = 10_000;

/** How many requests a process has answered before it is measured. */
const STAGES = ["from the first second", "after 10,000 requests", "after 200,000 requests"] as const;
type Stage = (typeof STAGES)[number];

const FIGURES: readonly { title: string; read(result: LoadResult): number }[] = [
  { title: "CPU", read: ({ cpuMicroseconds, requests }) => cpuMicroseconds / requests },
  { title: "user", read: ({ cpuMicroseconds, requests, userShare }) => (cpuMicroseconds / requests) * userShare },
  {
    title: "system",
    read: ({ cpuMicroseconds, requests, userShare }) => (cpuMicroseconds / requests) * (1 - userShare),
  },
];

/** At one rate, or as fast as it goes. */
function jobOf(perSecond: number | undefined, measureMs: number): LoadJob {
  return {
    pattern:
      perSecond === undefined ? { kind: "closed", connections: 32 } : { kind: "paced", perSecond, connections: 64 },
    answer: { kind: "plain", bytes: 1024 },
    promptBytes: 1000,
    warmUpMs: 0,
    measureMs,
  };
}

interface PacedRun {
  subjects: readonly SubjectName[];
  quick: boolean;
  rounds: number;
  surroundings: Surroundings;
  progress: Progress;
}

/** A round takes about four minutes. */
export async function pacedRows({ subjects, quick, rounds, surroundings, progress }: PacedRun): Promise<Row[]> {
  const measureMs = quick ? 2_000 : 4_000;
  const results = new Map<string, Partial<Record<SubjectName, LoadResult[]>>>();

  async function measure(subject: Subject, name: SubjectName, perSecond: number, stage: Stage): Promise<void> {
    const result = await runLoad(jobOf(perSecond, measureMs), subject);
    const key = keyOf(perSecond, stage);
    const bySubject = results.get(key) ?? {};
    bySubject[name] = [...(bySubject[name] ?? []), result];
    results.set(key, bySubject);
    const [cpu, user] = FIGURES.map(({ read }) => read(result).toFixed(1));
    progress(`paced ${perSecond}/s ${stage} ${name}: CPU ${cpu} µs, user ${user} µs`);
  }

  for (let round = 1; round <= rounds; round++) {
    for (const name of subjects) {
      for (const perSecond of RATES) {
        const fresh = startSubject(name, surroundings);
        await awaitFirstAnswer(fresh);
        await measure(fresh, name, perSecond, "from the first second");
        await warmUp(fresh, jobOf(perSecond, measureMs), EARLY_UNITS - (perSecond * measureMs) / 1_000);
        await measure(fresh, name, perSecond, "after 10,000 requests");
        await stopSubject(fresh);
      }
      const old = startSubject(name, surroundings);
      await awaitFirstAnswer(old);
      await warmUp(old, jobOf(undefined, measureMs), LATE_UNITS);
      for (const perSecond of RATES) await measure(old, name, perSecond, "after 200,000 requests");
      await stopSubject(old);
    }
  }
  return RATES.flatMap((perSecond) =>
    STAGES.flatMap((stage) =>
      FIGURES.map(({ title, read }) => {
        const figures = Object.entries(results.get(keyOf(perSecond, stage)) ?? {});
        return makeRow({
          section: `plain 1 KB answers at ${perSecond.toLocaleString("en")} requests/s, per request`,
          title: `${title} ${stage}`,
          unit: "µs",
          digits: 1,
          show: "value",
          rounds: Object.fromEntries(figures.map(([name, each]) => [name, each.map(read)])),
        });
      }),
    ),
  );
}

function keyOf(perSecond: number, stage: Stage): string {
  return `${perSecond} ${stage}`;
}
