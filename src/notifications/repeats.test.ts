// Events of a subject that changes often.

import { expect, test } from "bun:test";
import type { Happened } from "./notice.ts";
import { createRepeats } from "./repeats.ts";

function repeatsOf() {
  const told: string[] = [];
  let nowMs = 0;
  const repeats = createRepeats({
    windowMs: 100,
    now: () => nowMs,
    tell: ({ type, subject }) => told.push(`${type} ${subject}`),
  });
  const add = (type: Happened["type"], subject = "one") => repeats.add({ type, subject, data: {}, text: "" });
  return {
    told,
    add,
    repeats,
    at(ms: number) {
      nowMs = ms;
      repeats.sweep();
    },
  };
}

test("a flapping backend is told once of each, and the state that it comes to rest in", () => {
  const { told, add, at } = repeatsOf();
  for (let times = 0; times < 10; times++) {
    add("backend_down");
    add("backend_up");
  }
  add("backend_down");
  expect(told).toEqual(["backend_down one", "backend_up one"]);
  at(100);
  expect(told).toEqual(["backend_down one", "backend_up one", "backend_down one"]);
});

test("a state that is known already is not told again", () => {
  const { told, add, at } = repeatsOf();
  add("circuit_open");
  add("circuit_open");
  at(100);
  expect(told).toEqual(["circuit_open one"]);
  add("circuit_open");
  expect(told).toHaveLength(2);
});

test("other subjects and other kinds of events have nothing to do with it", () => {
  const { told, add } = repeatsOf();
  add("backend_down");
  add("backend_down", "two");
  add("circuit_open");
  expect(told).toEqual(["backend_down one", "backend_down two", "circuit_open one"]);
});
