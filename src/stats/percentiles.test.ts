import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { RingClock } from "../lib/time-rings.ts";
import { COARSE, FINE, MAX_LATENCY_MS, MIN_LATENCY_MS, WindowedLatencies } from "./percentiles.ts";

const clock = new RingClock({ now: () => 0, wallTime: () => 1_800_000_000_000 });
clock.tick();

const latency = fc.double({ min: MIN_LATENCY_MS * 1.01, max: MAX_LATENCY_MS * 0.99, noNaN: true });

describe("percentiles", () => {
  test("are at most the documented error away from the exact ones", () => {
    fc.assert(
      fc.property(
        fc.array(latency, { minLength: 1, maxLength: 300 }),
        fc.constantFrom(0.5, 0.95, 0.99, 1),
        fc.constantFrom(COARSE, FINE),
        (latencies, part, bits) => {
          const histogram = new WindowedLatencies(bits);
          for (const latencyMs of latencies) histogram.add(clock.position, latencyMs);
          const sorted = latencies.toSorted((a, b) => a - b);
          const exact = sorted[Math.ceil(part * sorted.length) - 1] as number;
          const [answered] = histogram.percentiles(undefined, [part]);
          expect(Math.abs((answered as number) - exact) / exact).toBeLessThanOrEqual(1 / 2 ** (bits + 1) + 1e-9);
        },
      ),
    );
  });

  test("what is beyond the limits is counted at the limits", () => {
    const histogram = new WindowedLatencies(FINE);
    for (const odd of [0, -1, Number.NaN, 1e-9]) histogram.add(clock.position, odd);
    for (const odd of [1e12, Number.POSITIVE_INFINITY]) histogram.add(clock.position, odd);
    const [low, high] = histogram.percentiles(undefined, [0.5, 1]) as [number, number];
    expect(low).toBeLessThan(MIN_LATENCY_MS * 1.05);
    expect(high).toBeGreaterThan(MAX_LATENCY_MS * 0.95);
  });

  test("no requests, no latency", () => {
    expect(new WindowedLatencies(FINE).percentiles(undefined, [0.5, 0.99])).toEqual([0, 0]);
    expect(new WindowedLatencies(FINE).percentiles([{ slot: 0, bucket: 1 }], [0.5])).toEqual([0]);
  });

  test("what was written is restored", () => {
    const histogram = new WindowedLatencies(FINE);
    for (let latencyMs = 1; latencyMs <= 1000; latencyMs++) histogram.add(clock.position, latencyMs);
    const copy = new WindowedLatencies(FINE);
    copy.restore(JSON.parse(JSON.stringify(histogram.write())), () => true);
    const window = [{ slot: clock.position.slots[0] as number, bucket: clock.position.buckets[0] as number }];
    for (const slots of [undefined, window]) {
      expect(copy.percentiles(slots, [0.5, 0.95, 0.99])).toEqual(histogram.percentiles(slots, [0.5, 0.95, 0.99]));
    }
  });
});
