// The second table of a run: who was measured in a scenario, one line each, and on which threads the time went.

import { median, medianRatio } from "./figures.ts";
import { alignColumns, type Row } from "./report.ts";
import { SUBJECT_TITLES, type SubjectName } from "./subjects.ts";

export function formatLadders(rows: readonly Row[]): string {
  return rows
    .filter(({ threads }) => threads !== undefined)
    .map((row) => alignColumns(ladderLines(row), "text"))
    .join("\n\n");
}

function ladderLines({ section, title, unit, rounds, threads = {} }: Row): string[][] {
  const { nginx } = rounds;
  const lines = (Object.keys(threads) as SubjectName[]).map((name) => {
    const figures = rounds[name]!;
    const best = Math.min(...figures);
    return [
      `  ${SUBJECT_TITLES[name]}`,
      median(figures).toFixed(1),
      nginx === undefined ? "-" : `${medianRatio(figures, nginx).toFixed(2)}×`,
      best.toFixed(1),
      nginx === undefined ? "-" : `${(best / Math.min(...nginx)).toFixed(2)}×`,
      threads[name]!,
    ];
  });
  return [["", "median", "to nginx", "best", "to nginx", "by thread"], [`${section}: ${title} (${unit})`], ...lines];
}
