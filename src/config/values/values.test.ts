// Paths and walks over plain values.

import { expect, test } from "bun:test";
import { formatPath, isNestedTooDeeply, mapStrings, valueAt } from "./values.ts";

test("formatPath", () => {
  expect(formatPath([])).toBe("");
  expect(formatPath(["backends", 0, "headers", "X-Team"])).toBe("backends[0].headers.X-Team");
  expect(formatPath(["timeouts", "models", "a.b/c", "request"])).toBe('timeouts.models["a.b/c"].request');
});

test("valueAt sees own properties only", () => {
  expect(valueAt({ a: [{ b: 1 }] }, ["a", 0, "b"])).toBe(1);
  expect(valueAt({ a: "text" }, ["a", "length"])).toBeUndefined();
  expect(valueAt({}, ["constructor", "name"])).toBeUndefined();
});

test("mapStrings copies, and keeps keys called __proto__ ordinary", () => {
  const value = JSON.parse('{"__proto__": {"a": "x"}, "b": ["y", 1, null]}');
  const copy = mapStrings(value, (text, path) => `${formatPath(path)}=${text}`);
  expect(JSON.stringify(copy)).toBe('{"__proto__":{"a":"__proto__.a=x"},"b":["b[0]=y",1,null]}');
  expect(({} as Record<string, unknown>).a).toBeUndefined();
});

test("isNestedTooDeeply counts levels, and ends on circles", () => {
  expect(isNestedTooDeeply([[1]], 2)).toBe(false);
  expect(isNestedTooDeeply([[[]]], 2)).toBe(true);
  const circle: unknown[] = [];
  circle.push(circle, circle);
  expect(isNestedTooDeeply(circle)).toBe(true);
});
