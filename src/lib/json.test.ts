// What counts as a JSON object, and what of one is left out.

import { expect, test } from "bun:test";
import { compact, isObject, parseObject } from "./json.ts";

test("only an object is an object", () => {
  expect([{}, { a: 1 }].map(isObject)).toEqual([true, true]);
  expect([null, [], "a", 1, true, undefined].map(isObject)).toEqual([false, false, false, false, false, false]);
});

test("only the text of an object is read", () => {
  expect(parseObject('{"a":[1]}')).toEqual({ a: [1] });
  expect(["[DONE]", "[]", "null", "1", '"a"', "", '{"a":'].map(parseObject)).toEqual(Array(7).fill(undefined));
});

test("members that are undefined are left out, all others stay", () => {
  expect(Object.keys(compact({ a: undefined, b: null, c: 0, d: "" }))).toEqual(["b", "c", "d"]);
});
