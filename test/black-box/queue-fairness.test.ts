// The fair queue with real processes: small tenants behind a heavy one, with the queue and without it. The long form is
// test/simulation/processes.ts.

import { expect, setDefaultTimeout, test } from "bun:test";
import type { Scenario } from "../simulation/fair-queue.ts";
import { runOverSockets } from "../simulation/over-sockets.ts";

setDefaultTimeout(60_000);

/** Small engines with short answers, so that the wait is as long as it will be after two seconds. */
const scenario: Scenario = {
  ...{ seed: 1, engines: 2, agents: 60, burst: 4 },
  shape: { slots: 4, stepMs: 20, sequenceMs: 0, inputTokenMs: 0.06, chunkTokens: 2048 },
  heavy: { input: 1_000, cached: 900, output: 12 },
  small: { input: 300, cached: 0, output: 5 },
  ...{ estimate: 1, smallRate: 4, warmUpMs: 2_000, measuredMs: 5_000 },
};

test("small tenants wait less than half as long as without the queue, and no request is lost", async () => {
  // At the same time, so that what else the machine does makes both slower.
  const [without, fair] = await Promise.all([runOverSockets("off", scenario), runOverSockets("a number", scenario)]);
  expect(fair.p50Ms).toBeLessThan(without.p50Ms / 2);
  expect(fair.throughput).toBeGreaterThan(without.throughput / 2);
  expect([fair.failed, fair.smallLost, fair.heavyLost]).toEqual([0, 0, 0]);
  expect([without.failed, without.smallLost, without.heavyLost]).toEqual([0, 0, 0]);
});
