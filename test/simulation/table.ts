// The rows of the fair queue's tables in docs/scaling.md.

import type { Outcome } from "./fair-queue.ts";

const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;
const percent = (part: number) => `${(100 * part).toFixed(1)} %`;

export const TABLE_HEAD = [
  "| Policy | p50 | p95 | by alone | longest | lost | agents' p95 | agents' lost | throughput | Jain | limit |",
  `|${"---|".repeat(11)}`,
];

/** @param than - what small tenants have alone, and the throughput of first come first served: 0 where there are no agents */
export function outcomeRow(name: string, outcome: Outcome, than: { alone: Outcome; best: number }): string {
  const { p50Ms, p95Ms, maxMs, smallLost, heavyP95Ms, heavyLost, throughput, jain, limit } = outcome;
  const byAlone = (p95Ms / than.alone.p95Ms).toFixed(2);
  const waits = `${seconds(p50Ms)} | ${seconds(p95Ms)} | ${byAlone} | ${seconds(maxMs)} | ${percent(smallLost)}`;
  const all =
    than.best === 0
      ? "– | – | – | –"
      : `${seconds(heavyP95Ms)} | ${percent(heavyLost)} | ${percent(throughput / than.best)} | ${jain.toFixed(3)}`;
  return `| ${name} | ${waits} | ${all} | ${Number.isFinite(limit) ? limit : "–"} |`;
}
