// Reports of GET /admin/metrics/series as lines of a chart and as numbers.

import type { SeriesReport } from "../../admin/metrics-history.ts";

type Labels = Readonly<Record<string, string>>;

/** The end of each step, in Unix milliseconds. */
export function timesOf({ from_ms, to_ms, step_ms, series }: SeriesReport): number[] {
  const steps = series[0]?.values.length ?? 0;
  return Array.from({ length: steps }, (_, step) => Math.min(to_ms, from_ms + (step + 1) * step_ms));
}

/** The sum of the series whose labels fit, step by step; undefined where nothing is known. */
export function linesOf(
  { series }: SeriesReport,
  fits: (labels: Labels) => boolean = () => true,
  convert: (value: number) => number = (value) => value,
): (number | undefined)[] {
  const lines = series.filter(({ labels }) => fits(labels));
  // A kind of request that never came is 0 where others are known.
  const known = lines.length === 0 ? series.slice(0, 1) : lines;
  return (known[0]?.values ?? []).map((_, step) => {
    const values = known.map(({ values }) => values[step] ?? null);
    if (values.every((value) => value === null)) return undefined;
    return lines.length === 0 ? 0 : convert(values.reduce<number>((sum, value) => sum + (value ?? 0), 0));
  });
}

/** What was counted in all steps, of a report of rates. */
export function totalOf(report: SeriesReport, fits?: (labels: Labels) => boolean): number {
  const { from_ms, to_ms, step_ms } = report;
  return linesOf(report, fits).reduce<number>((sum, rate, step) => {
    const lengthMs = Math.min(step_ms, to_ms - (from_ms + step * step_ms));
    return sum + ((rate ?? 0) * lengthMs) / 1_000;
  }, 0);
}
