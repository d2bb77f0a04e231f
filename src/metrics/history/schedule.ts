// A time of day in cron form: "0 3 * * *" is three in the morning, local time. Other forms have no meaning here.

export interface DailyTime {
  hour: number;
  minute: number;
}

export function parseDailyTime(schedule: string): DailyTime | undefined {
  const [, minute, hour] = /^(\d{1,2})\s+(\d{1,2})\s+\*\s+\*\s+\*$/.exec(schedule.trim()) ?? [];
  if (minute === undefined || hour === undefined || Number(minute) > 59 || Number(hour) > 23) return undefined;
  return { hour: Number(hour), minute: Number(minute) };
}

/** Milliseconds until it is this time of day again; never 0. */
export function untilDailyTime({ hour, minute }: DailyTime, wallTimeMs: number): number {
  const next = new Date(wallTimeMs);
  next.setHours(hour, minute, 0, 0);
  if (next.getTime() <= wallTimeMs) next.setDate(next.getDate() + 1);
  return next.getTime() - wallTimeMs;
}
