// Who is first by scores and objections.

import { expect, test } from "bun:test";
import fc from "fast-check";
import type { BackendEntry } from "../backends/board.ts";
import { Choice } from "./choice.ts";
import type { SelectionStrategy } from "./strategy.ts";

interface Candidate {
  isAllowed: boolean;
  score: number;
  isObjected: boolean;
}

function choose(given: readonly Candidate[], more: Partial<SelectionStrategy> = {}, random = 0.5): number {
  const choice = new Choice();
  choice.begin(given.map(() => ({}) as BackendEntry));
  for (const [place, { isAllowed }] of given.entries()) if (isAllowed) choice.places.push(place);
  const strategy: SelectionStrategy = {
    scoreMeans: "a number",
    best: "highest",
    score({ places, scores, objections }) {
      for (const place of places) {
        const { score, isObjected } = given[place] as Candidate;
        scores[place] = score;
        if (isObjected) objections[place] = "over_share";
      }
    },
    ...more,
  };
  return choice.choose(strategy, { sessionKey: () => "s", random: () => random, nowMs: 0, isRetry: false });
}

const candidates = fc.array(
  fc.record({ isAllowed: fc.boolean(), score: fc.integer({ min: -3, max: 3 }), isObjected: fc.boolean() }),
  { maxLength: 8 },
);

test("property: nobody who may be asked is better, and an objection weighs more than any score", () => {
  fc.assert(
    fc.property(
      candidates,
      fc.constantFrom("highest" as const, "lowest" as const),
      fc.boolean(),
      (given, best, drawsTies) => {
        const chosen = choose(given, { best, drawsTies });
        const allowed = given.filter(({ isAllowed }) => isAllowed);
        if (allowed.length === 0) return expect(chosen).toBe(-1);
        const { isAllowed, score, isObjected } = given[chosen] as Candidate;
        const unobjected = allowed.filter((each) => !each.isObjected);
        const rivals = (unobjected.length > 0 ? unobjected : allowed).map((each) => each.score);
        expect(isAllowed).toBe(true);
        expect(isObjected).toBe(unobjected.length === 0);
        expect(score).toBe(best === "highest" ? Math.max(...rivals) : Math.min(...rivals));
      },
    ),
  );
});

test("of equally good ones the first is chosen, or one is drawn", () => {
  const equal = [0, 5, 5, 5].map((score) => ({ isAllowed: true, score, isObjected: false }));
  expect([choose(equal), choose(equal, { drawsTies: true }, 0.999), choose(equal, { drawsTies: true }, 0)]).toEqual([
    1, 1, 3,
  ]);
});
