// A time of day in cron form, as section metrics allows it: "0 3 * * *" is three in the morning, local time.

/** Milliseconds until it is this time of day again; never 0. */
export function untilDaily(schedule: string, wallTimeMs: number): number {
  const [minute = 0, hour = 0] = schedule.split(" ").map(Number);
  const next = new Date(wallTimeMs);
  next.setHours(hour, minute, 0, 0);
  if (next.getTime() <= wallTimeMs) next.setDate(next.getDate() + 1);
  return next.getTime() - wallTimeMs;
}
