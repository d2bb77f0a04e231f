// What is kept of targets, and when one is worse than the main one.

import { describe, expect, test } from "bun:test";
import { documentSchema } from "../config/sections/registry.ts";
import type { RouteSettings } from "../config/sections/routes.ts";
import { RequestRecord } from "../stats/request-record.ts";
import { createArmBook } from "./arm-book.ts";

const [ROUTE] = documentSchema.parse({
  routes: [
    {
      name: "r",
      targets: [
        { model: "main", weight: 90 },
        { model: "trial", weight: 10 },
      ],
      rollback: { metric: "error_rate", min_requests: 50, window: "10m" },
    },
  ],
}).routes as [RouteSettings];

function bookAt(clock: { nowMs: number }) {
  const book = createArmBook(() => clock.nowMs);
  function add(arm: string, facts: Partial<RequestRecord> = {}, cost?: number): void {
    const record = new RequestRecord("1", "1", 0, () => 0);
    record.askArms([{ route: "r", arm }]);
    Object.assign(record, { outcome: "succeeded", firstByteMs: 100, durationMs: 200, ...facts });
    book.over(record, cost);
  }
  const worse = (more: Partial<NonNullable<RouteSettings["rollback"]>> = {}) =>
    book.worseIn({ ...ROUTE, rollback: { ...ROUTE.rollback!, ...more } }, ROUTE.targets);
  return { book, add, worse };
}

describe("a target is worse", () => {
  test("when it fails more often than the main one, and not by one failure of chance", () => {
    const { add, worse } = bookAt({ nowMs: 1 });
    for (let index = 0; index < 450; index++) add("main");
    for (let index = 0; index < 49; index++) add("trial");
    expect(worse()).toEqual([]);
    add("trial", { outcome: "failed" });
    expect(worse()).toEqual([]);
    for (let index = 0; index < 3; index++) add("trial", { outcome: "failed" });
    expect(worse()).toEqual([
      { route: "r", arm: "trial", main: "main", metric: "error_rate", value: 4 / 53, compared: 0 },
    ]);
  });

  test("only where both had enough requests in the window", () => {
    const clock = { nowMs: 0 };
    const { add, worse } = bookAt(clock);
    for (let index = 0; index < 60; index++) add("main");
    for (let index = 0; index < 60; index++) add("trial", { outcome: "failed" });
    clock.nowMs = 11 * 60_000;
    expect(worse()).toEqual([]);
  });

  test("by the 95th percentile of the first token, and by cost", () => {
    const { add, worse } = bookAt({ nowMs: 1 });
    for (let index = 0; index < 60; index++) add("main", {}, 1);
    for (let index = 0; index < 60; index++) add("trial", { firstByteMs: index < 50 ? 100 : 900 }, 2);
    expect(worse({ metric: "first_token_p95" })).toMatchObject([{ value: 900, compared: 100 }]);
    add("trial", {}, 2);
    add("trial", {}, 2);
    expect(worse({ metric: "cost" })).toMatchObject([{ value: 2, compared: 1 }]);
    add("trial", {}, 2);
    add("trial", {}, 2);
    expect(worse({ metric: "cost", worse_than: 3 })).toEqual([]);
  });
});

test("a target in several lists is judged in each of them", () => {
  const { book, add } = bookAt({ nowMs: 1 });
  const [main, trial] = ROUTE.targets as [RouteSettings["targets"][0], RouteSettings["targets"][0]];
  for (let index = 0; index < 60; index++) add("seldom");
  for (let index = 0; index < 60; index++) add("main");
  for (let index = 0; index < 60; index++) add("trial", { outcome: "failed" });
  const firstList = [{ ...main, model: "seldom" }, trial];
  expect(book.worseIn({ ...ROUTE, rollback: { ...ROUTE.rollback!, min_requests: 100 } }, firstList)).toEqual([]);
  expect(book.worseIn(ROUTE, ROUTE.targets)).toMatchObject([{ arm: "trial", main: "main" }]);
});

test("a target whose numbers were forgotten is judged by its new ones", () => {
  const { add, worse } = bookAt({ nowMs: 1 });
  for (let index = 0; index < 500; index++) add("trial");
  for (let index = 0; index < 60; index++) add("main");
  expect(worse()).toEqual([]);
  for (let index = 0; index < 1_000; index++) add(`many ${index}`);
  for (let index = 0; index < 60; index++) add("main");
  for (let index = 0; index < 60; index++) add("trial", { outcome: "failed" });
  expect(worse()).toMatchObject([{ arm: "trial", value: 1 }]);
});

test("refusals, clients that left, cached and shared answers say nothing of a target", () => {
  const { book, add } = bookAt({ nowMs: 1 });
  add("main", { outcome: "refused" });
  add("main", { outcome: "client_left" });
  add("main", { cache: "HIT" });
  add("main", { isShared: true });
  expect(book.numbers({ route: "r", arm: "main" })).toBeUndefined();
});

test("a target that failed before another one answered has an error, and no time of the answer", () => {
  const { book } = bookAt({ nowMs: 1 });
  const record = new RequestRecord("1", "1", 0, () => 0);
  record.askArms([{ route: "r", arm: "main" }]);
  record.failArms([{ route: "r", arm: "main" }]);
  record.askArms([{ route: "r", arm: "trial" }]);
  Object.assign(record, { outcome: "succeeded", firstByteMs: 5, durationMs: 9 });
  book.over(record, undefined);
  const values = (arm: string) => book.numbers({ route: "r", arm })?.values("failed", 0);
  expect([values("main"), values("trial")]).toEqual([[1], [0]]);
  expect(book.numbers({ route: "r", arm: "trial" })?.values("firstTokenMs", 0)).toEqual([]);
});

test("numbers are bounded, and go with their targets", () => {
  const { book, add } = bookAt({ nowMs: 1 });
  for (let index = 0; index < 2_500; index++) add("main", { outcome: index < 1_500 ? "failed" : "succeeded" });
  const numbers = book.numbers({ route: "r", arm: "main" });
  expect(numbers?.count).toBe(2_500);
  expect(numbers?.values("failed", 0)).toHaveLength(1_000);
  expect(numbers?.values("failed", 0).every((value) => value === 0)).toBe(true);
  add("gone");
  book.keepOnly([ROUTE]);
  expect(book.numbers({ route: "r", arm: "gone" })).toBeUndefined();
  for (let index = 0; index < 1_100; index++) add(`many ${index}`);
  expect(book.numbers({ route: "r", arm: "many 0" })).toBeUndefined();
});
