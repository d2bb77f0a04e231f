// Which share of the requests a failing backend gets: a strategy goes on as if it had answered, and never clings to it.

import { expect, test } from "bun:test";
import type { StrategyName } from "../../src/config/sections/routing.ts";
import { firstChoices } from "../support/first-choices.ts";
import { workerCount } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const REQUESTS = 60;

const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);

/** What holds of the first choices per backend; the first backend is the one that fails. */
const EXPECTED: Record<StrategyName, (counts: readonly number[]) => void> = {
  RoundRobin: expectEven,
  WeightedRoundRobin: expectEven,
  // By chance: more than five standard deviations away would be a mistake.
  Random: (counts) => expect(Math.min(...counts)).toBeGreaterThan(REQUESTS / counts.length - 20),
  // At the same moment no worker knows what another one chooses.
  LeastLatency: ([failing = 0, ...others]) =>
    expect(failing).toBeLessThanOrEqual(Math.max(...others) + 2 * (workerCount() - 1)),
  // Sessions stay where they are, so that each backend has some of them.
  ConsistentHash: (counts) => expect(Math.min(...counts)).toBeGreaterThan(REQUESTS / counts.length / 3),
  // Prompts without a whole block go where their sessions go.
  PrefixAwareHash: (counts) => expect(Math.min(...counts)).toBeGreaterThan(REQUESTS / counts.length / 3),
};

function expectEven(counts: readonly number[]): void {
  // Each worker has turns of its own.
  expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(workerCount());
}

const FAILING: readonly (readonly [size: number, status: number])[] = [
  [2, 401],
  [3, 400],
  [3, 500],
];

for (const [strategy, expectShares] of Object.entries(EXPECTED)) {
  for (const [size, status] of FAILING) {
    test(`${strategy} with ${size} backends, one of which answers ${status}, spreads first choices`, async () => {
      for (const isConcurrent of [false, true]) {
        const { counts } = await firstChoices(bed, { strategy, size, status, requests: REQUESTS, isConcurrent });
        expect(sum(counts)).toBe(REQUESTS);
        expectShares(counts);
      }
    });
  }
}
