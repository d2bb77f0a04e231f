// Windows of the calendar begin when a day, a week or a month does where the gateway runs.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { readTimes, readWindow, WINDOW_NAMES } from "./query.ts";

const DAY_MS = 86_400_000;

test("today, this week and this month begin at midnight, on Monday, and on the first", () => {
  const times = fc.date({ min: new Date("2000-01-01"), max: new Date("2100-01-01"), noInvalidDate: true });
  fc.assert(
    fc.property(times, (now) => {
      const start = (window: string) => {
        const { sinceMs } = readTimes(new URLSearchParams({ window }), now.getTime());
        const begun = new Date(sinceMs ?? Number.NaN);
        expect([begun.getHours(), begun.getMinutes(), begun.getSeconds(), begun.getMilliseconds()]).toEqual([
          0, 0, 0, 0,
        ]);
        expect(begun.getTime()).toBeLessThanOrEqual(now.getTime());
        return begun;
      };
      expect(start("today").toDateString()).toBe(now.toDateString());
      const week = start("this_week");
      expect(week.getDay()).toBe(1);
      expect(now.getTime() - week.getTime()).toBeLessThan(7 * DAY_MS + DAY_MS / 24); // an hour more when clocks change
      const month = start("this_month");
      expect([month.getDate(), month.getMonth()]).toEqual([1, now.getMonth()]);
    }),
  );
});

test("a window that there is not, and one beside times, are refused with their name", () => {
  const read = (query: string) => () => readTimes(new URLSearchParams(query), 0);
  expect(read("window=1y")).toThrow("'window' must be one of all, 30m, 1h");
  expect(read("window=1h&since=0")).toThrow("'window' must be left out");
  expect(readWindow(new URLSearchParams(), WINDOW_NAMES, 0)).toEqual({ name: "all", ms: undefined });
});
