import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { addCost, CostLedger, costOf, NONE, nanosOf } from "./costs.ts";
import { OTHER } from "./counted.ts";
import type { CostNames } from "./written-stats.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const START = Date.UTC(2026, 4, 1);

const names = (key_id: string, model_id = "m"): CostNames => ({
  key_id,
  user_id: NONE,
  organization_id: NONE,
  model_id,
  backend_name: "b",
});

function spend(ledger: CostLedger, timeMs: number, cost: number, who = names("k")): void {
  addCost(ledger.row(timeMs, who), { input: { total: 10, cacheRead: 4 }, output: { total: 5 } }, cost);
}

const sumOf = (ledger: CostLedger, sinceMs?: number, untilMs?: number) =>
  [...ledger.rows(sinceMs, untilMs)].reduce((sum, { row }) => sum + row.cost, 0);

describe("what tokens cost", () => {
  const usage = { input: { total: 1000, cacheRead: 400, cacheWrite: 100 }, output: { total: 200 } };

  test("a batch of the vendor takes half off, or the share that is told", () => {
    const prices = { inputTokens: 1, outputTokens: 10 };
    const batched = { ...usage, isBatched: true as const };
    expect(costOf(batched, prices)).toBe(costOf(usage, prices) / 2);
    expect(costOf(batched, { ...prices, batchDiscount: 0.25 })).toBe(costOf(usage, prices) * 0.75);
    expect(costOf(batched, { ...prices, batchDiscount: 0 })).toBe(costOf(usage, prices));
    expect(costOf(usage, { ...prices, batchDiscount: 0.25 })).toBe(costOf(usage, prices));
  });

  test("tokens read from a cache and written to one have prices of their own, where there are some", () => {
    const prices = { inputTokens: 1, outputTokens: 10 };
    expect(costOf(usage, prices)).toBe(3);
    expect(costOf(usage, { ...prices, cacheReadTokens: 0.1, cacheWriteTokens: 2 })).toBeCloseTo(0.5 + 0.04 + 0.2 + 2);
    expect(costOf(usage, undefined)).toBe(0);
  });

  test("reasoning, pictures and sound have prices of their own", () => {
    const prices = { inputTokens: 0, outputTokens: 1 };
    const thought = { input: { total: 0 }, output: { total: 1000, reasoning: 400 } };
    expect(costOf(thought, prices)).toBe(1);
    expect(costOf(thought, { ...prices, reasoningTokens: 0.5 })).toBe(0.8);
    const nothing = { input: { total: 0 }, output: { total: 0 } };
    expect(costOf({ ...nothing, images: 3 }, { ...prices, image: 0.04 })).toBe(0.12);
    expect(costOf({ ...nothing, audioSeconds: 90 }, { ...prices, audioMinute: 0.006 })).toBe(0.009);
  });

  test("money is whole billionths, never less than what a vendor bills", () => {
    const tokens = fc.nat(5_000_000);
    const price = fc.integer({ min: 0, max: 600_000 }).map((millionths) => millionths / 1e6);
    fc.assert(
      fc.property(tokens, tokens, price, price, (input, output, inputTokens, outputTokens) => {
        const counted = { input: { total: input }, output: { total: output } };
        const nanos = nanosOf(counted, { inputTokens, outputTokens });
        expect(Number.isSafeInteger(nanos)).toBe(true);
        const exact =
          BigInt(input) * BigInt(Math.round(inputTokens * 1e9)) +
          BigInt(output) * BigInt(Math.round(outputTokens * 1e9));
        expect(BigInt(nanos)).toBe((exact + 999n) / 1000n);
      }),
    );
  });
});

describe("the ledger", () => {
  test("counts by the hour, older than a week by the day, and loses nothing", () => {
    const ledger = new CostLedger();
    for (let hour = 0; hour < 24 * 30; hour++) spend(ledger, START + hour * HOUR + 1, 1);
    const nowMs = START + 30 * DAY - 1;
    expect(sumOf(ledger)).toBe(720);
    expect(sumOf(ledger, nowMs - HOUR)).toBe(2); // the hours that the window touches count as a whole
    expect(sumOf(ledger, nowMs - DAY)).toBe(25);
    expect(sumOf(ledger, START, START + DAY)).toBe(24);
    const stretches = [...ledger.write()];
    expect(stretches.length).toBeLessThan(240);
    expect(stretches[1]).toMatchObject({ from: START, to: START + DAY, rows: [{ requests: 24, cached_tokens: 96 }] });
  });

  test("days beyond a year and a month are one sum", () => {
    const ledger = new CostLedger();
    spend(ledger, START, 5);
    spend(ledger, START + 500 * DAY, 7);
    expect(sumOf(ledger)).toBe(12);
    expect(sumOf(ledger, 0)).toBe(7);
  });

  test("is bounded in rows, and what is too much is counted together", () => {
    const ledger = new CostLedger();
    for (let hour = 0; hour < 40; hour++) {
      for (let key = 0; key < 1_200; key++) spend(ledger, START + hour * HOUR, 1, names(`k${key}`));
    }
    const rows = [...ledger.rows()].map(({ row }) => row);
    expect(rows.length).toBeLessThan(25_000);
    expect(rows.find(({ key_id }) => key_id === OTHER)?.model_id).toBe(OTHER);
    expect(sumOf(ledger)).toBe(48_000);
  });

  test("what was written is restored, whatever the clock says", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 600 * 24 }), fc.constantFrom("a", "b", "c")), { maxLength: 60 }),
        fc.integer({ min: -10, max: 700 }),
        (spent, days) => {
          const ledger = new CostLedger();
          for (const [hour, key] of spent.toSorted(([one], [other]) => one - other)) {
            spend(ledger, START + hour * HOUR, 1, names(key));
          }
          const copy = new CostLedger();
          copy.restore(JSON.parse(JSON.stringify([...ledger.write()])), [], START + days * DAY);
          expect(sumOf(copy)).toBe(spent.length);
          spend(copy, START + days * DAY, 1);
          expect(sumOf(copy)).toBe(spent.length + 1);
        },
      ),
    );
  });
});
