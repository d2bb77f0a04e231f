// The ledger: what is let in, what is counted, and what of it outlives the process.

import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { createKeyIdentity } from "../access/key-identity.ts";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { silentLogger } from "../logging/logger.ts";
import { NANOS } from "../stats/costs.ts";
import { type Amounts, NOTHING } from "./amounts.ts";
import type { OverBudget, Reservation, Reserved, Threshold } from "./budgets.ts";
import { type Ledger as AnyLedger, createLedger } from "./ledger.ts";
import { createRules, type Spender } from "./rules.ts";
import { createSpendingStore } from "./spending-store.ts";

type RuleInput = NonNullable<NonNullable<ConfigDocument["budgets"]>["rules"]>[number];

const START = Date.UTC(2026, 4, 10, 12);
const folders: string[] = [];
const ledgers: { stop(): void }[] = [];

afterEach(() => {
  for (const ledger of ledgers.splice(0)) ledger.stop();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function rulesOf(rules: RuleInput[], keys: NonNullable<ConfigDocument["api_keys"]>["keys"] = []) {
  const { budgets, api_keys, organizations } = documentSchema.parse({ budgets: { rules }, api_keys: { keys } });
  return createRules(
    { budgets, keys: api_keys.keys, organizations },
    createKeyIdentity(() => "salt"),
  );
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "budgets-"));
  folders.push(folder);
  return folder;
}

/** One that has no other gateways decides at once. */
type Ledger = Omit<AnyLedger, "reserve"> & { reserve(...asked: Parameters<AnyLedger["reserve"]>): Reserved };

function start(rules: RuleInput[], folder = newFolder(), maxAccounts?: number) {
  const clock = { nowMs: START, now: () => clock.nowMs, wallTime: () => clock.nowMs };
  const refused: string[] = [];
  const crossed: Threshold[] = [];
  const log = silentLogger();
  const ledger = createLedger({
    rules: rulesOf(rules),
    store: createSpendingStore(join(folder, "budgets.db"), log),
    clock,
    log,
    told: { refused: (rule) => void refused.push(rule), crossed: (threshold) => void crossed.push(threshold) },
    ...(maxAccounts !== undefined && { maxAccounts }),
  });
  ledgers.push(ledger);
  return { ledger: ledger as Ledger, clock, refused, crossed, folder };
}

const spender = (more: Partial<Spender> = {}): Spender => ({
  keyId: "k",
  userId: undefined,
  organizationId: undefined,
  model: "m",
  backend: "b",
  ...more,
});
const one = { ...NOTHING, requests: 1 };
const money = (units: number): Amounts => ({ ...one, cost: units * NANOS });

function refusalOf(ledger: Ledger, bound = one, who = spender()): OverBudget | undefined {
  const { refusal } = ledger.reserve(who, bound);
  return refusal;
}

function spend(ledger: Ledger, spent: Amounts, who = spender(), bound = one): void {
  const reserved = ledger.reserve(who, bound);
  if (reserved.refusal === undefined) reserved.reservation?.settle(spent);
}

describe("what is let in", () => {
  test("while anything is left; from then on nothing until the window is over", () => {
    const { ledger, clock, refused } = start([{ id: "day", limit: { cost: 10 }, window: "day" }]);
    spend(ledger, money(9.5));
    expect(refusalOf(ledger)).toBeUndefined();
    spend(ledger, money(3));
    expect(refusalOf(ledger)).toMatchObject({
      rule: "day",
      spent: 12.5 * NANOS,
      limit: 10 * NANOS,
      freeAtMs: Date.UTC(2026, 4, 11),
    });
    expect(refused).toEqual(["day"]);
    clock.nowMs = Date.UTC(2026, 4, 11);
    expect(refusalOf(ledger)).toBeUndefined();
  });

  test("a strict rule wants what the request may cost at most, beside what is set aside for others", () => {
    const { ledger } = start([{ id: "s", limit: { cost: 10 }, window: "month", strict: true }]);
    const first = ledger.reserve(spender(), money(6));
    expect(refusalOf(ledger, money(5))).toMatchObject({ held: 6 * NANOS, asked: 5 * NANOS, spent: 0 });
    expect(refusalOf(ledger, money(4))).toBeUndefined();
    if (first.refusal === undefined) first.reservation?.settle(money(1));
    expect(refusalOf(ledger, money(5))).toBeUndefined();
  });

  test("what a client asks for beyond reason, or below nothing, does not harm the sums", () => {
    const { ledger } = start([{ id: "in", limit: { input_tokens: 100 }, window: "day", strict: true }]);
    for (const output of [Number.POSITIVE_INFINITY, Number.NaN, -5]) {
      spend(ledger, { ...one, cost: output, output }, spender(), { ...one, cost: output, output, input: 10 });
    }
    const [account] = [...ledger.accounts()];
    expect(account?.reserved).toEqual(NOTHING);
    expect(account?.spent).toEqual({ cost: 1_000_000 * NANOS, input: 0, output: 1e12, requests: 3 });
    expect(refusalOf(ledger, { ...one, input: -1_000 })).toBeUndefined();
  });

  test("requests are counted exactly without strict", () => {
    const { ledger } = start([{ id: "r", limit: { requests: 2 }, window: "hour" }]);
    expect([0, 1, 2].map(() => refusalOf(ledger) === undefined)).toEqual([true, true, false]);
  });

  test("a rule that is exceeded is no reason where another model is named, if that one is asked", () => {
    const rule = { id: "u", limit: { requests: 0 }, window: "day", when_exceeded: { use_model: "small" } } as const;
    const { ledger } = start([rule]);
    expect(refusalOf(ledger)).toMatchObject({ useModel: "small" });
    expect(refusalOf(ledger, one, spender({ model: "small" }))).toBeUndefined();
  });

  test("a rule that refuses wins over one with a model that stands in, and warn never refuses", () => {
    const at = { limit: { requests: 0 }, window: "day" } as const;
    const { ledger } = start([
      { id: "warn", ...at, when_exceeded: "warn" },
      { id: "model", ...at, when_exceeded: { use_model: "small" } },
      { id: "hard", ...at, match: { model: "m" } },
    ]);
    expect(refusalOf(ledger)).toMatchObject({ rule: "hard", useModel: undefined });
    expect(refusalOf(ledger, one, spender({ model: "other" }))).toMatchObject({ rule: "model" });
  });

  test("a duration up to now gives back what was spent as it passes", () => {
    const { ledger, clock } = start([{ id: "rolling", limit: { cost: 10 }, window: "1h" }]);
    spend(ledger, money(6));
    clock.nowMs += 30 * 60_000;
    spend(ledger, money(6));
    const refusal = refusalOf(ledger);
    expect(refusal?.freeAtMs).toBeGreaterThan(START + 3_600_000);
    expect(refusal?.freeAtMs).toBeLessThanOrEqual(START + 3_660_000);
    clock.nowMs = refusal?.freeAtMs as number;
    expect(refusalOf(ledger)).toBeUndefined();
  });
});

describe("whom a rule counts", () => {
  test("names, lists and globs, all of which have to hold; per keeps them apart", () => {
    const match = { key: ["a", "team-*"], model: "gpt-*" };
    const { ledger } = start([{ id: "r", match, limit: { requests: 1 }, window: "day", per: "key" }]);
    const ask = (keyId: string | undefined, model = "gpt-x") =>
      refusalOf(ledger, one, spender({ keyId, model })) === undefined;
    expect([ask("a"), ask("team-1"), ask("team-2"), ask("b"), ask("a", "claude"), ask(undefined)]).toEqual(
      Array(6).fill(true),
    );
    expect([ask("a"), ask("team-1"), ask("b"), ask("a", "claude"), ask(undefined)]).toEqual([
      ...[false, false, true, true, true],
    ]);
  });

  test("those without a name share one budget of a rule with per", () => {
    const { ledger } = start([{ id: "r", limit: { requests: 1 }, window: "day", per: "user" }]);
    expect(refusalOf(ledger)).toBeUndefined();
    expect(refusalOf(ledger, one, spender({ keyId: "other" }))).toMatchObject({ subject: "(none)" });
  });

  test("a key carries a budget and tokens per minute of its own", () => {
    const rules = rulesOf(
      [],
      [{ key: "secret-1", id: "intern", budget: { cost: 20, window: "month" }, token_limit: 20_000 }],
    );
    expect(rules.matching(spender({ keyId: "intern" })).map(({ id, isRate }) => [id, isRate])).toEqual([
      ["key:intern", false],
      ["key:intern:tokens", true],
    ]);
    expect(rules.matching(spender({ keyId: "other" }))).toEqual([]);
  });
});

describe("what lasts", () => {
  test("what was spent is there after a restart, and thresholds are told once", () => {
    const rules: RuleInput[] = [{ id: "m", limit: { cost: 10 }, window: "month", warn_at: [0.5, 0.8] }];
    const before = start(rules);
    spend(before.ledger, money(6));
    spend(before.ledger, money(1));
    expect(before.crossed.map(({ share }) => share)).toEqual([0.5]);
    before.ledger.stop();
    const after = start(rules, before.folder);
    spend(after.ledger, money(2));
    expect(after.crossed).toMatchObject([{ rule: "m", share: 0.8, spent: 9 * NANOS, limit: 10 * NANOS }]);
    spend(after.ledger, money(2));
    expect(refusalOf(after.ledger)).toMatchObject({ spent: 11 * NANOS });
  });

  test("two processes with one data folder lose nothing of each other", () => {
    const rules: RuleInput[] = [{ id: "m", limit: { cost: 10 }, window: "month" }];
    const first = start(rules);
    spend(first.ledger, money(1));
    const second = start(rules, first.folder);
    spend(second.ledger, money(2));
    spend(first.ledger, money(4));
    first.ledger.stop();
    second.ledger.stop();
    const { ledger } = start(rules, first.folder);
    expect(ledger.subjects(ledger.rule("m") as never)).toMatchObject([{ cost: 7 * NANOS, requests: 3 }]);
  });

  test("a reset counts from then on, and taken back it counts what it did before", () => {
    const rule: RuleInput = { id: "m", limit: { cost: 10 }, window: "month" };
    const { ledger, clock } = start([rule]);
    spend(ledger, money(10));
    expect(refusalOf(ledger)).toBeDefined();
    clock.nowMs += 1_000;
    ledger.follow(rulesOf([{ ...rule, reset_at: new Date(clock.nowMs).toISOString() }]));
    expect(refusalOf(ledger)).toBeUndefined();
    spend(ledger, money(1));
    ledger.follow(rulesOf([rule]));
    expect(refusalOf(ledger)).toMatchObject({ spent: 11 * NANOS });
  });

  test("a reset of a rule with per is seen by those who only look", () => {
    const rule: RuleInput = { id: "m", limit: { cost: 10 }, window: "month", per: "key" };
    const { ledger, clock } = start([rule]);
    spend(ledger, money(10));
    clock.nowMs += 1_000;
    ledger.follow(rulesOf([{ ...rule, reset_at: new Date(clock.nowMs).toISOString() }]));
    expect([...ledger.accounts()].map(({ subject, spent }) => [subject, spent.cost])).toEqual([["k", 0]]);
  });

  test("a changed limit keeps what was spent and what is set aside", () => {
    const rule: RuleInput = { id: "m", limit: { cost: 10 }, window: "month", strict: true };
    const { ledger } = start([rule]);
    spend(ledger, money(5), spender(), money(5));
    const held = ledger.reserve(spender(), money(5));
    ledger.follow(rulesOf([{ ...rule, limit: { cost: 12 } }]));
    expect(refusalOf(ledger, money(3))).toMatchObject({ held: 5 * NANOS, spent: 5 * NANOS });
    if (held.refusal === undefined) held.reservation?.settle(money(5));
    expect(refusalOf(ledger, money(2))).toBeUndefined();
  });

  test("accounts are bounded, and those that made room are found again", () => {
    const { ledger } = start([{ id: "r", limit: { requests: 2 }, window: "day", per: "key" }], undefined, 10);
    const keys = Array.from({ length: 50 }, (_, index) => spender({ keyId: `key-${index}` }));
    for (const key of keys) spend(ledger, one, key);
    expect([...ledger.accounts()].length).toBeLessThanOrEqual(10);
    for (const key of keys) spend(ledger, one, key);
    expect(keys.every((key) => refusalOf(ledger, one, key) !== undefined)).toBe(true);
  });
});

describe("in any order of arrivals and ends", () => {
  const step = fc.record({
    units: fc.integer({ min: 0, max: 40 }),
    share: fc.integer({ min: 0, max: 100 }),
    ends: fc.nat(20),
  });

  function run(isStrict: boolean, steps: { units: number; share: number; ends: number }[]) {
    const { ledger } = start([{ id: "x", limit: { cost: 100 }, window: "month", strict: isStrict }]);
    const open: { reservation: Reservation; most: number; costs: number }[] = [];
    let spent = 0;
    let admittedOver = 0;
    for (const { units, share, ends } of steps) {
      const reserved = ledger.reserve(spender(), money(units));
      if (reserved.refusal === undefined) {
        if (spent >= 100) admittedOver++;
        open.push({ reservation: reserved.reservation as Reservation, most: units, costs: (units * share) / 100 });
      }
      const ended = open.splice(ends % (open.length + 1), 1)[0];
      if (ended === undefined) continue;
      ended.reservation.settle(money(ended.costs));
      spent += ended.costs;
    }
    const inFlight = open.reduce((sum, { costs }) => sum + costs, 0);
    return { spent, inFlight, admittedOver, largest: open.reduce((sum, { most }) => sum + most, 0) };
  }

  test("a strict budget is never exceeded by what could be known", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const { spent, inFlight } = run(true, steps);
        expect(spent + inFlight).toBeLessThanOrEqual(100 + 1e-6);
      }),
      { numRuns: 60 },
    );
  });

  test("any other is exceeded by the requests in flight at most", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        expect(run(false, steps).admittedOver).toBe(0);
      }),
      { numRuns: 60 },
    );
  });
});
