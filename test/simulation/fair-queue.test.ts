// The short form of run.ts.

import { expect, test } from "bun:test";
import { run, SCENARIO } from "./fair-queue.ts";

const short = { ...SCENARIO, warmUpMs: 180_000, measuredMs: 600_000 };

test("small tenants wait as if the heavy one was not there, and the engines lose nothing by it", async () => {
  const alone = await run("fair, a number", { ...short, agents: 0 });
  const first = await run("FCFS in the engines", short);
  const fair = await run("fair, a number", short);
  expect(first.p95Ms).toBeGreaterThan(10 * alone.p95Ms);
  expect(fair.p95Ms).toBeLessThanOrEqual(1.2 * alone.p95Ms);
  expect(fair.throughput).toBeGreaterThanOrEqual(0.98 * first.throughput);
  expect(fair.jain).toBeGreaterThanOrEqual(0.95);
  // No request starves, of the heavy tenant neither.
  expect([fair.smallLost, fair.heavyLost]).toEqual([0, 0]);
  expect(fair.maxMs).toBeLessThan(1.5 * alone.maxMs);
});

test("nor do they wait longer when the heavy one begins, and its inputs are expected to be larger than they are", async () => {
  const beginning = { ...short, warmUpMs: 20_000, measuredMs: 120_000, estimate: 1.5 };
  const alone = await run("fair, a number", { ...beginning, agents: 0 });
  const fair = await run("fair, a number", beginning);
  expect(fair.p95Ms).toBeLessThanOrEqual(1.3 * alone.p95Ms);
  expect(fair.maxMs).toBeLessThan(1.5 * alone.maxMs);
});

test("nor do they wait longer with slots that the gateway finds by itself", async () => {
  const later = { ...short, warmUpMs: 600_000 };
  const alone = await run("fair, a number", { ...later, agents: 0 });
  const first = await run("FCFS in the engines", later);
  const fair = await run("fair, auto", later);
  expect(fair.p95Ms).toBeLessThanOrEqual(1.2 * alone.p95Ms);
  expect(fair.throughput).toBeGreaterThanOrEqual(0.98 * first.throughput);
  expect(fair.jain).toBeGreaterThanOrEqual(0.95);
  expect([fair.smallLost, fair.heavyLost]).toEqual([0, 0]);
  expect(fair.limit).toBe(later.shape.slots);
});

test("by priorities, requests of a low one starve behind a tenant that claims a high one", async () => {
  const { smallLost, jain } = await run("priority, agents as all", short);
  expect(smallLost).toBeGreaterThan(0.1);
  expect(jain).toBeLessThan(0.95);
});
