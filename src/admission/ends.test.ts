import { expect, test } from "bun:test";
import { Ends } from "./ends.ts";

test("counts the ends before a moment, and none at it", () => {
  const ends = new Ends();
  for (const atMs of [10, 20, 20, 30]) ends.add(atMs, 100);
  expect(ends.count).toBe(4);
  expect([5, 10, 11, 20, 21, 30, 31].map((atMs) => ends.before(atMs))).toEqual([0, 0, 1, 1, 3, 3, 4]);
});

test("remembers as many as it is asked to, less than twice as many, and says what it has forgotten", () => {
  const ends = new Ends();
  for (let atMs = 0; atMs < 1000; atMs++) ends.add(atMs, 8);
  expect(ends.count).toBe(1000);
  expect(ends.before(1000)).toBe(1000);
  expect(ends.before(993)).toBe(993);
  expect(ends.before(984)).toBeUndefined();
});
