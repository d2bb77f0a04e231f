// CPU time by thread, as words: where a microsecond goes.

import { median } from "./figures.ts";
import type { LoadResult } from "./load.ts";
import type { Rounds } from "./measure.ts";
import type { Metric } from "./scenarios.ts";
import type { MeasuredName } from "./subjects.ts";

const LEAST_SHOWN_MICROSECONDS = 0.05;

/** The shares of every subject whose CPU was read. */
export function threadsOf(metric: Metric, results: Rounds<LoadResult>): Partial<Record<MeasuredName, string>> {
  const threads: Partial<Record<MeasuredName, string>> = {};
  for (const [name, figures] of results) {
    if (name !== "direct") threads[name] = threadShares(metric, figures);
  }
  return threads;
}

/**
 * "main 41.2, HTTP Client 12.0": medians over rounds, threads of one pool added up.
 * @param metric - CPU per request or per chunk
 */
export function threadShares(metric: Metric, results: readonly LoadResult[]): string {
  const rounds = results.map((result) => {
    const share = metric.read(result) / result.cpuMicroseconds;
    const shares = new Map<string, number>();
    for (const [name, microseconds] of Object.entries(result.cpuMicrosecondsByThread)) {
      const pool = name.replace(/[ _-]?\d+$/, "");
      shares.set(pool, (shares.get(pool) ?? 0) + microseconds * share);
    }
    return shares;
  });
  const pools = new Set(rounds.flatMap((shares) => [...shares.keys()]));
  return [...pools]
    .map((pool) => ({ pool, share: median(rounds.map((shares) => shares.get(pool) ?? 0)) }))
    .filter(({ share }) => share >= LEAST_SHOWN_MICROSECONDS)
    .sort((left, right) => right.share - left.share)
    .map(({ pool, share }) => `${pool} ${share.toFixed(1)}`)
    .join(", ");
}
