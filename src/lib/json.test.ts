// What counts as a JSON object.

import { expect, test } from "bun:test";
import { isObject } from "./json.ts";

test("only an object is an object", () => {
  expect([{}, { a: 1 }].map(isObject)).toEqual([true, true]);
  expect([null, [], "a", 1, true, undefined].map(isObject)).toEqual([false, false, false, false, false, false]);
});
