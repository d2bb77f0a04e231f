// Schemas for constrained decoding.

import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../lib/json.ts";
import { cleanSchema } from "./constrained-schema.ts";

describe("schemas", () => {
  test("what constrained decoding refuses is told in words", () => {
    expect(
      cleanSchema({
        $schema: "x",
        type: "object",
        description: "d",
        minProperties: 1,
        required: ["a"],
        properties: {
          a: { type: "string", pattern: "^x", maxLength: 3, format: "regex" },
          b: { oneOf: [{ type: "null" }, { properties: {} }] },
          c: { type: "array", items: { type: ["object", "null"], additionalProperties: true }, uniqueItems: true },
          d: { type: "string", format: "date", examples: ["x"] },
          e: { not: { type: "null" }, allOf: [{ $ref: "#/$defs/E" }] },
        },
        $defs: { E: { enum: [1, 2], minimum: 0 } },
      }),
    ).toEqual({
      $schema: "x",
      type: "object",
      description: "d (minProperties: 1)",
      required: ["a"],
      additionalProperties: false,
      properties: {
        a: { type: "string", description: '(maxLength: 3, pattern: "^x", format: "regex")' },
        b: { anyOf: [{ type: "null" }, { properties: {}, additionalProperties: false }] },
        c: {
          type: "array",
          items: { type: ["object", "null"], additionalProperties: false },
          description: "(uniqueItems: true)",
        },
        d: { type: "string", format: "date" },
        e: { allOf: [{ $ref: "#/$defs/E" }], description: '(not: {"type":"null"})' },
      },
      $defs: { E: { enum: [1, 2], description: "(minimum: 0)" } },
    });
  });

  const nested = (depth: number): JsonObject => (depth === 0 ? {} : { items: nested(depth - 1) });
  const unusable: [title: string, schema: JsonObject][] = [
    ["a reference to itself", { properties: { a: { $ref: "#" } } }],
    [
      "a circle",
      { $ref: "#/$defs/A", $defs: { A: { items: { $ref: "#/$defs/B" } }, B: { items: { $ref: "#/$defs/A" } } } },
    ],
    ["a reference to elsewhere", { $ref: "https://x/schema" }],
    ["a reference to nothing", { $ref: "#/$defs/none" }],
    ["a name of the language", { $ref: "#/__proto__" }],
    ["endless nesting", nested(100)],
  ];
  test.each(unusable)("%s cannot be used", (_title, schema) => {
    expect(cleanSchema(schema)).toBeUndefined();
  });

  test("a definition that is used twice is no circle", () => {
    const schema = {
      $defs: { "a/b": { type: "string" } },
      anyOf: [{ $ref: "#/$defs/a~1b" }, { $ref: "#/$defs/a~1b" }],
    };
    expect(cleanSchema(schema)).toEqual(schema);
  });
});
