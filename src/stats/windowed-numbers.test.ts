import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isSlotOf, RingClock, slotsWithin } from "../lib/time-rings.ts";
import { WindowedNumbers } from "./windowed-numbers.ts";
import { WindowedSums } from "./windows.ts";

const START = 1_800_000_000_000;
const MINUTE = 60_000;
const DAY = 1440 * MINUTE;
const WINDOWS = [MINUTE, 60 * MINUTE, DAY, 7 * DAY];

/** Whole minutes between one event and the next, up to several days. */
const pauses = fc.array(fc.oneof(fc.nat(5), fc.nat(3_000)), { minLength: 1, maxLength: 60 });

function setUp() {
  const time = { ms: 0 };
  const clock = new RingClock({ now: () => time.ms, wallTime: () => START + time.ms });
  return { time, clock };
}

describe("numbers over windows", () => {
  test("a window has what was counted in it, and at most what one bucket before it had", () => {
    fc.assert(
      fc.property(pauses, fc.constantFrom(...WINDOWS), (minutes, windowMs) => {
        const { time, clock } = setUp();
        const numbers = new WindowedNumbers(2, Uint32Array);
        const events: { atMs: number; index: number }[] = [];
        for (const [number, pause] of minutes.entries()) {
          time.ms += pause * MINUTE;
          clock.tick();
          numbers.count(clock.position, number % 2);
          events.push({ atMs: time.ms, index: number % 2 });
        }
        const sums = numbers.sums(slotsWithin(windowMs, clock.tick()));
        const bucketMs = windowMs <= 60 * MINUTE ? MINUTE : windowMs <= DAY ? 15 * MINUTE : 120 * MINUTE;
        for (const index of [0, 1]) {
          const within = (ms: number) => events.filter((each) => each.index === index && time.ms - each.atMs <= ms);
          expect(sums[index]).toBeGreaterThanOrEqual(within(windowMs).length);
          expect(sums[index]).toBeLessThanOrEqual(within(windowMs + bucketMs).length);
        }
        expect([...numbers.sums(undefined)]).toEqual([Math.ceil(events.length / 2), Math.floor(events.length / 2)]);
      }),
    );
  });

  test("what was written and restored says the same of every window", () => {
    fc.assert(
      fc.property(pauses, (minutes) => {
        const { time, clock } = setUp();
        const sums = new WindowedSums();
        for (const pause of minutes) {
          time.ms += pause * MINUTE;
          clock.tick();
          sums.add(clock.position, 1, 0, pause % 2, 1, pause, 2, 3, pause);
        }
        const nowMs = clock.tick();
        const copy = new WindowedSums();
        copy.restore(sums.write(), (slot, bucket) => isSlotOf(slot, bucket, nowMs));
        for (const windowMs of [undefined, ...WINDOWS]) {
          const slots = windowMs === undefined ? undefined : slotsWithin(windowMs, nowMs);
          expect(copy.sum(slots)).toEqual(sums.sum(slots));
        }
      }),
    );
  });

  test("nothing is written of blocks without a number", () => {
    expect(new WindowedSums().write()).toEqual([]);
  });

  test("sums of earlier versions are taken up, without refusals", () => {
    const sums = new WindowedSums();
    sums.restore([[-1, -1, 4, 1, 300, 40, 20, 400, 3]], () => true);
    expect(sums.sum(undefined)).toMatchObject({ requests: 4, failed: 1, succeeded: 3, refused: 0, latencyMs: 300 });
  });
});
