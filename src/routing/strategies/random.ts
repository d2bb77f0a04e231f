// Random: every candidate with the same chance.

import type { SelectionStrategy } from "../strategy.ts";

export function randomChoice(): SelectionStrategy {
  return {
    scoreMeans: "its chance; one is drawn",
    best: "highest",
    drawsTies: true,
    score({ places, scores }) {
      for (const place of places) scores[place] = 1 / places.length;
    },
  };
}
