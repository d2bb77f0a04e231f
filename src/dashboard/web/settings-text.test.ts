// Settings and schemas, field by field.

import { expect, test } from "bun:test";
import { fieldsOf, flatten, valueText } from "./settings-text.ts";

test("values by their paths", () => {
  expect(flatten({ a: 1, b: { c: "x", d: [1], e: {} } })).toEqual([
    ["a", 1],
    ["b.c", "x"],
    ["b.d", [1]],
    ["b.e", {}],
  ]);
  expect(flatten(undefined)).toEqual([]);
});

test("values in words", () => {
  expect([valueText("x"), valueText(1), valueText([1, "a"]), valueText(undefined), valueText(null)]).toEqual([
    "x",
    "1",
    '[1,"a"]',
    "nothing",
    "null",
  ]);
});

test("fields of a schema", () => {
  const schema = {
    properties: {
      mode: { enum: ["a", "b"], default: "a", description: "Which." },
      most: { type: "integer", minimum: 1, maximum: 9 },
      list: { type: "array", items: { properties: { name: { type: "string", description: "Its name." } } } },
      either: { anyOf: [{ type: "string" }, { type: "null" }] },
      inner: { properties: { flag: { type: "boolean", default: false } } },
    },
  };
  expect(fieldsOf(schema)).toEqual([
    { path: "mode", type: "a | b", description: "Which.", byDefault: "a" },
    { path: "most", type: "integer from 1 to 9", description: "", byDefault: undefined },
    { path: "list", type: "list of any", description: "", byDefault: undefined },
    { path: "list[].name", type: "string", description: "Its name.", byDefault: undefined },
    { path: "either", type: "string | null", description: "", byDefault: undefined },
    { path: "inner.flag", type: "boolean", description: "", byDefault: "false" },
  ]);
  expect(fieldsOf("nonsense")).toEqual([]);
});
