import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isSlotOf, RingClock, SLOT_COUNT, slotsWithin } from "./time-rings.ts";

const HOUR = 3_600_000;
const WINDOWS = [HOUR / 2, HOUR, 24 * HOUR, 7 * 24 * HOUR];
const START = Date.UTC(2026, 0, 1);

describe("time rings", () => {
  test("a window holds every moment within it, and none that is older than a bucket more", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...WINDOWS),
        fc.integer({ min: START, max: START + 400 * 24 * HOUR }),
        fc.double({ min: 0, max: 2, noNaN: true }),
        (windowMs, nowMs, age) => {
          const momentMs = nowMs - age * windowMs;
          let wallMs = momentMs;
          const clock = new RingClock({ now: () => wallMs, wallTime: () => wallMs });
          clock.tick();
          const slots = slotsWithin(windowMs, nowMs);
          const { position } = clock;
          const isIn = slots.some(({ slot, bucket }) =>
            position.slots.some((own, ring) => own === slot && position.buckets[ring] === bucket),
          );
          wallMs = nowMs;
          if (age <= 1) expect(isIn).toBe(true);
          else if (age > 1.04) expect(isIn).toBe(false); // the coarsest bucket is a thirtieth of its window
          for (const { slot, bucket } of slots) {
            expect(slot).toBeLessThan(SLOT_COUNT);
            expect(isSlotOf(slot, bucket, nowMs)).toBe(true);
            expect(isSlotOf(slot, bucket + 1, nowMs)).toBe(false);
          }
        },
      ),
    );
  });

  test("the clock does not go back when the wall clock does", () => {
    let nowMs = 0;
    let wallMs = START;
    const clock = new RingClock({ now: () => nowMs, wallTime: () => wallMs });
    expect(clock.tick()).toBe(START);
    nowMs = 60_000;
    wallMs = START - HOUR;
    expect(clock.tick()).toBe(START + 60_000);
  });

  test("a slot from the future is nobody's", () => {
    const [newest] = slotsWithin(HOUR, START);
    expect(isSlotOf(newest!.slot, newest!.bucket, START - 2 * 60_000)).toBe(false);
  });
});
