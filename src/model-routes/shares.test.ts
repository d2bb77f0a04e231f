// Properties of shares: exact in turn, in proportion by lot, and no more moves than a changed weight asks for.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { createShares } from "./shares.ts";

const named = (weights: readonly number[]) => weights.map((weight, index) => ({ name: `t${index}`, weight }));
const weights = fc
  .array(fc.integer({ min: 0, max: 50 }), { minLength: 1, maxLength: 8 })
  .filter((given) => given.some((weight) => weight > 0));

test("in turn, every run of as many requests as the weights add up to has exactly the weights", () => {
  fc.assert(
    fc.property(weights, fc.integer({ min: 1, max: 4 }), (given, runs) => {
      const shares = createShares("r", named(given));
      const total = given.reduce((sum, weight) => sum + weight, 0);
      for (let run = 0; run < runs; run++) {
        const counts = given.map(() => 0);
        for (let index = 0; index < total; index++) counts[shares.inTurn()]!++;
        expect(counts).toEqual(given);
      }
    }),
  );
});

test("in turn, requests are spread: no target is further from its share than there are targets", () => {
  fc.assert(
    fc.property(weights, (given) => {
      const shares = createShares("r", named(given));
      const total = given.reduce((sum, weight) => sum + weight, 0);
      const counts = given.map(() => 0);
      for (let sent = 1; sent <= total; sent++) {
        counts[shares.inTurn()]!++;
        for (const [place, weight] of given.entries()) {
          expect(Math.abs(counts[place]! - (sent * weight) / total)).toBeLessThanOrEqual(given.length);
        }
      }
    }),
  );
});

const SESSIONS = 4_000;

function placesOf(given: readonly number[]): number[] {
  const shares = createShares("r", named(given));
  return Array.from({ length: SESSIONS }, (_, index) => shares.ofSession(`session ${index}`)!.place);
}

test("by lot, sessions are shared in proportion to the weights", () => {
  fc.assert(
    fc.property(weights, (given) => {
      const places = placesOf(given);
      const total = given.reduce((sum, weight) => sum + weight, 0);
      for (const [place, weight] of given.entries()) {
        const share = places.filter((found) => found === place).length / SESSIONS;
        expect(Math.abs(share - weight / total)).toBeLessThan(0.05);
      }
    }),
    { numRuns: 30 },
  );
});

test("by lot, a greater weight takes sessions for its target alone, and a smaller one gives up its own alone", () => {
  fc.assert(
    fc.property(weights, fc.nat(), fc.integer({ min: 0, max: 60 }), (given, at, weight) => {
      const changed = at % given.length;
      const after = given.with(changed, weight);
      fc.pre(after.some((each) => each > 0));
      const [before, now] = [placesOf(given), placesOf(after)];
      for (const [index, place] of before.entries()) {
        if (now[index] === place) continue;
        expect(weight > given[changed]! ? now[index] : place).toBe(changed);
      }
    }),
    { numRuns: 30 },
  );
});
