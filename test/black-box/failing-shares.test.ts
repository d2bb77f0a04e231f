// Which share of the requests a failing backend gets: a strategy goes on as if it had answered, and never clings to it.

import { describe, expect, test } from "bun:test";
import type { StrategyName } from "../../src/config/sections/routing.ts";
import { startPools } from "../support/first-choices.ts";
import { workerCount } from "../support/gateway-parts.ts";
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

const POOLS = {
  "two-of-401": { size: 2, status: 401 },
  "two-of-400": { size: 2, status: 400 },
  "two-of-500": { size: 2, status: 500 },
  "three-of-401": { size: 3, status: 401 },
  "three-of-400": { size: 3, status: 400 },
  "three-of-500": { size: 3, status: 500 },
};

describe.each(Object.entries(EXPECTED))("%s", (strategy, expectShares) => {
  test("spreads first choices, whatever one of two or three backends answers, one request at a time and all at once", async () => {
    const choose = await startPools(bed, strategy, POOLS);
    for (const pool of Object.keys(POOLS) as (keyof typeof POOLS)[]) {
      for (const isConcurrent of [false, true]) {
        const counts = await choose(pool, { requests: REQUESTS, isConcurrent });
        expect(sum(counts)).toBe(REQUESTS);
        expectShares(counts);
      }
    }
  });
});
