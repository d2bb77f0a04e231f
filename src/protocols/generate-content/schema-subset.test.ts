// Schemas of clients in the words that the API knows.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { JsonObject } from "../../lib/json.ts";
import { cleanParameters, cleanSchema } from "./schema-subset.ts";

const CASES: [name: string, schema: JsonObject, expected: JsonObject][] = [
  ["const", { const: "a" }, { type: "string", enum: ["a"] }],
  ["const beside a type", { type: "integer", const: 1 }, { type: "integer", enum: [1] }],
  ["const null", { const: null }, { type: "null" }],
  ["const true", { const: true }, { type: "boolean", description: "One of: true." }],
  ["enum with null", { type: "string", enum: ["a", null] }, { type: ["string", "null"], enum: ["a"] }],
  ["enum with null, said", { type: ["string", "null"], enum: ["a", null] }, { type: ["string", "null"], enum: ["a"] }],
  ["enum of kinds", { enum: ["a", true] }, { type: ["string", "boolean"], description: 'One of: "a", true.' }],
  ["upper case types", { type: "STRING" }, { type: "string" }],
  ["nullable type", { type: ["string", "null"] }, { type: ["string", "null"] }],
  ["unknown members", { type: "string", $schema: "s", $comment: "c", examples: [1], "x-y": 1 }, { type: "string" }],
  [
    "constraints are told",
    { type: "string", description: "A code.", pattern: "^a", maxLength: 3, format: "email" },
    { type: "string", description: 'A code. (maxLength: 3, pattern: "^a", format: email)' },
  ],
  [
    "known format and bounds",
    { type: "integer", format: "int32", minimum: 1, maximum: 2 },
    { type: "integer", format: "int32", minimum: 1, maximum: 2 },
  ],
  [
    "oneOf",
    { oneOf: [{ const: "a" }, { type: "null" }] },
    { anyOf: [{ type: "string", enum: ["a"] }, { type: "null" }] },
  ],
  [
    "objects",
    {
      type: "object",
      properties: { a: { type: "array" }, default: { const: 1 } },
      required: ["a"],
      additionalProperties: { const: 2 },
    },
    {
      type: "object",
      properties: { a: { type: "array", items: {} }, default: { type: "number", enum: [1] } },
      required: ["a"],
      additionalProperties: { type: "number", enum: [2] },
    },
  ],
  [
    "tuples of old drafts",
    { type: "array", items: [{ type: "string" }] },
    { type: "array", prefixItems: [{ type: "string" }] },
  ],
  [
    "references stand alone",
    {
      type: "object",
      properties: { a: { $ref: "#/definitions/b", description: "d" } },
      definitions: { b: { const: 1 } },
    },
    { type: "object", properties: { a: { $ref: "#/$defs/b" } }, $defs: { b: { type: "number", enum: [1] } } },
  ],
  [
    "allOf",
    {
      description: "d",
      required: ["a"],
      allOf: [
        { type: "object", properties: { a: { type: "string" } } },
        { properties: { b: { type: "number" } }, required: ["b"], description: "other" },
      ],
    },
    {
      type: "object",
      description: "d",
      properties: { a: { type: "string" }, b: { type: "number" } },
      required: ["a", "b"],
    },
  ],
  ["allOf of a reference", { allOf: [{ $ref: "#/$defs/a" }], default: 1 }, { $ref: "#/$defs/a" }],
  ["true and false", { properties: { a: true } }, { properties: { a: {} } }],
];

describe("cleanSchema", () => {
  test.each(CASES)("%s", (_name, schema, expected) => {
    const before = structuredClone(schema);
    expect(cleanSchema(schema)).toEqual(expected);
    expect(schema).toEqual(before);
  });

  test("nesting without end is cut off", () => {
    for (const wrap of [(items: JsonObject) => ({ items }), (entry: JsonObject) => ({ allOf: [entry] })]) {
      let schema: JsonObject = { const: "deep" };
      for (let depth = 0; depth < 5_000; depth++) schema = wrap(schema);
      expect(JSON.stringify(cleanSchema(schema))).not.toContain("deep");
    }
  });

  const WORDS = /"(?:const|allOf|oneOf|pattern|\$schema|default|not|examples|minLength)":/;
  test("whatever it is given, nothing stays that the API refuses, and twice is once", () => {
    const { schema } = fc.letrec<{ schema: JsonObject; nested: JsonObject }>((tie) => ({
      nested: fc.oneof({ maxDepth: 3, withCrossShrink: true }, fc.constant({ type: "string" }), tie("schema")),
      schema: fc.record(
        {
          type: fc.oneof(fc.constantFrom("string", "object", "array", "odd"), fc.constant(["string", "null"])),
          const: fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null)),
          enum: fc.array(fc.oneof(fc.string(), fc.constant(null), fc.boolean())),
          properties: fc.dictionary(fc.constantFrom("a", "b"), tie("nested")),
          items: tie("nested"),
          anyOf: fc.array(tie("nested"), { maxLength: 2 }),
          oneOf: fc.array(tie("nested"), { maxLength: 2 }),
          allOf: fc.array(tie("nested"), { maxLength: 2 }),
          required: fc.array(fc.constantFrom("a", "b")),
          not: tie("nested"),
          $schema: fc.string(),
        },
        { requiredKeys: [] },
      ) as fc.Arbitrary<JsonObject>,
    }));
    fc.assert(
      fc.property(schema, (given) => {
        const cleaned = cleanSchema(given);
        const members = JSON.stringify(cleaned, (key, value) =>
          key === "description" || key === "enum" ? undefined : value,
        );
        expect(members).not.toMatch(WORDS);
        expect(cleanSchema(cleaned)).toEqual(cleaned);
      }),
    );
  });
});

describe("cleanParameters", () => {
  const none: (JsonObject | undefined)[] = [
    undefined,
    {},
    { type: "object" },
    { type: "object", properties: {} },
    { type: "object", properties: {}, required: [], additionalProperties: false },
  ];
  test.each(none.map((schema) => [schema]))("%j means no arguments", (schema) => {
    expect(cleanParameters(schema)).toBeUndefined();
  });

  test("anything else is an object", () => {
    expect(cleanParameters({ properties: { a: { type: "string" } } })).toEqual({
      type: "object",
      properties: { a: { type: "string" } },
    });
    expect(cleanParameters({ type: "object", additionalProperties: true })).toEqual({
      type: "object",
      additionalProperties: true,
    });
    expect(cleanParameters({ $ref: "#/$defs/a", $defs: { a: { type: "object" } } })).toEqual({
      $ref: "#/$defs/a",
      $defs: { a: { type: "object" } },
    });
  });
});
