import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { metricsSection } from "../../config/sections/metrics.ts";
import { untilDaily } from "./schedule.ts";

describe("time of day", () => {
  test("only minute and hour are honoured", () => {
    const isAllowed = (schedule: string) =>
      metricsSection.schema.safeParse({ persistence: { compaction: { schedule } } }).success;
    expect(["0 3 * * *", "59 23 * * *"].filter(isAllowed)).toHaveLength(2);
    const others = ["60 3 * * *", "0 24 * * *", "*/5 * * * *", "0 3 1 * *", "0 3 * *", "", "@daily"];
    expect(others.filter(isAllowed)).toEqual([]);
  });

  test("the next one is within a day and an hour, and has the hour and minute", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 23 }),
        fc.integer({ min: 0, max: 59 }),
        fc.integer({ min: Date.UTC(2020, 0), max: Date.UTC(2040, 0) }),
        (hour, minute, nowMs) => {
          const waitMs = untilDaily(`${minute} ${hour} * * *`, nowMs);
          expect(waitMs).toBeGreaterThan(0);
          expect(waitMs).toBeLessThanOrEqual(25 * 3_600_000);
          expect(new Date(nowMs + waitMs).getMinutes()).toBe(minute);
        },
      ),
    );
  });
});
