// Durations as people write them in configuration: "250ms", "30s", "5m", "1h", "7d", and sums such as "1m30s".

const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** JSON Schema pattern of the accepted form. */
export const DURATION_PATTERN = "^(\\d+(\\.\\d+)?(ms|s|m|h|d))+$";

/** Milliseconds of a duration text, or undefined when it is not one. */
export function parseDuration(text: string): number | undefined {
  if (!new RegExp(DURATION_PATTERN).test(text)) return undefined;
  let totalMs = 0;
  for (const [, amount, , unit] of text.matchAll(/(\d+(\.\d+)?)(ms|s|m|h|d)/g)) {
    totalMs += Number(amount) * (UNIT_MS[unit as string] as number);
  }
  return Math.round(totalMs);
}

/** The shortest text that parses back to the same milliseconds: 90000 is "90s", 300000 is "5m". */
export function formatDuration(durationMs: number): string {
  for (const unit of ["d", "h", "m", "s"]) {
    const unitMs = UNIT_MS[unit] as number;
    if (durationMs >= unitMs && durationMs % unitMs === 0) return `${durationMs / unitMs}${unit}`;
  }
  return `${durationMs}ms`;
}
