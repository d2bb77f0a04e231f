// Tools as servers list them, made into what every backend takes.

import { expect, test } from "bun:test";
import { readListedTool } from "./listed-tool.ts";

const NOTHING = { type: "object", properties: {} };
const parameters = (inputSchema: unknown) => readListedTool({ name: "t", inputSchema })?.parameters;

test.each([
  ["is missing", undefined, NOTHING],
  ["is no object", [1], NOTHING],
  ["is of another type", { type: "string" }, NOTHING],
  ["has no type", { properties: { a: {} } }, { type: "object", properties: { a: {} } }],
  ["has no properties", { type: "object" }, NOTHING],
  ["has odd members", { type: "object", properties: 7, required: "a" }, NOTHING],
  [
    "has a dialect",
    {
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: { a: { type: "string" } },
      required: ["a"],
    },
    { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
  ],
  [
    "chooses at the top",
    { type: "object", properties: {}, oneOf: [{}], additionalProperties: false },
    { ...NOTHING, additionalProperties: false },
  ],
])("a schema that %s", (_title, schema, expected) => {
  expect(parameters(schema)).toEqual(expected);
});

test("a schema that is too large is replaced, and the description says so", () => {
  const properties = Object.fromEntries(
    Array.from({ length: 5_000 }, (_, index) => [`name${index}`, { type: "string" }]),
  );
  const tool = readListedTool({ name: "t", description: "Does.", inputSchema: { type: "object", properties } });
  expect(tool).toMatchObject({
    parameters: NOTHING,
    description: "Does.\n(The schema of its arguments is too large to be shown.)",
  });
});

test("titles and descriptions", () => {
  expect(readListedTool({ name: "t" })).toMatchObject({ title: "t", description: "" });
  expect(readListedTool({ name: "t", title: "Tool" })).toMatchObject({ title: "Tool", description: "Tool" });
  expect(readListedTool({ name: "t", annotations: { title: "Old" }, description: "d".repeat(20_000) })).toMatchObject({
    title: "Old",
    description: "d".repeat(10_000),
  });
});

test("what has no name is no tool", () => {
  for (const value of [undefined, "t", {}, { name: 7 }, { name: "" }, { name: "x".repeat(513) }])
    expect(readListedTool(value)).toBeUndefined();
});

test.each([
  ["nothing is said", undefined, undefined],
  ["it only reads", { readOnlyHint: true }, undefined],
  ["it does not only read", { readOnlyHint: false }, true],
  ["it destroys", { destructiveHint: true }, true],
  ["it only reads, and destroys", { readOnlyHint: true, destructiveHint: true }, true],
  ["it destroys nothing", { destructiveHint: false }, undefined],
  ["odd hints", { readOnlyHint: "no", destructiveHint: 1 }, undefined],
])("whether it says that it changes something: %s", (_title, annotations, isChanging) => {
  expect(readListedTool({ name: "t", annotations })?.isChanging).toBe(isChanging as true);
});
