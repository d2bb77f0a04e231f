// Values made from JSON Schemas: they fit, and hostile schemas end.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { z } from "zod";
import { schemaExample } from "./schema-example.ts";

describe("schemaExample", () => {
  test("fills in the required properties only", () => {
    expect(
      schemaExample({
        type: "object",
        properties: {
          city: { type: "string" },
          days: { type: "integer" },
          unit: { enum: ["celsius", "fahrenheit"] },
          note: { type: "string" },
          place: { type: "object", properties: { lat: { type: "number" } }, required: ["lat"] },
          tags: { type: "array", items: { type: "boolean" }, minItems: 2 },
        },
        required: ["city", "days", "unit", "place", "tags"],
      }),
    ).toEqual({ city: "example", days: 1, unit: "celsius", place: { lat: 1 }, tags: [true, true] });
  });

  test.each([
    [{ const: 5 }, 5],
    [{ type: ["null", "integer"] }, 1],
    [{ type: "null" }, null],
    [{ anyOf: [{ type: "boolean" }, { type: "string" }] }, true],
    [{ type: "integer", minimum: 5 }, 5],
    [{ type: "array" }, []],
    [{}, "example"],
    [{ required: ["__proto__"] }, JSON.parse('{"__proto__":"example"}')],
  ])("%j gives %j", (schema, expected) => {
    expect(schemaExample(schema)).toEqual(expected as never);
  });

  test("follows references within the schema", () => {
    const schema = {
      $defs: { "a/b": { type: "object", properties: { x: { type: "integer" } }, required: ["x"] } },
      $ref: "#/$defs/a~1b",
    };
    expect(schemaExample(schema)).toEqual({ x: 1 });
    expect(schemaExample({ $ref: "https://example.com/schema" })).toBeNull();
  });

  test("ends on circles and on exploding schemas", () => {
    const circle = { properties: { a: { $ref: "#" }, b: { $ref: "#" } }, required: ["a", "b"] };
    expect(JSON.stringify(schemaExample(circle)).length).toBeLessThan(20_000);
    expect(schemaExample({ type: "array", minItems: 1e9, items: { type: "string", minLength: 1e9 } })).toHaveLength(20);
  });

  test("an example is not much longer than its schema, however often a long name or value is referred to", () => {
    const twenty = (items: object) => ({ type: "array", minItems: 20, items });
    const long = "x".repeat(100_000);
    for (const value of [{ const: long }, { enum: [long] }, { type: "object", required: [long] }]) {
      const schema = { $defs: { value }, ...twenty(twenty({ $ref: "#/$defs/value" })) };
      expect(JSON.stringify(schemaExample(schema)).length).toBeLessThan(2 * JSON.stringify(schema).length);
    }
  });

  test("makes a JSON value of any schema, also of one that no value fits", () => {
    const odd = fc.jsonValue({ maxDepth: 1 });
    const { schema } = fc.letrec((tie) => ({
      schema: fc.oneof(
        { maxDepth: 3 },
        fc.constant({}),
        fc.record(
          {
            type: fc.constantFrom<unknown>("object", "array", "string", "integer", "null", 7, [], ["null"], {}),
            enum: fc.oneof(fc.constant([]), odd),
            anyOf: fc.oneof(fc.constant([]), fc.array(tie("schema"), { maxLength: 2 }), odd),
            properties: fc.oneof(fc.dictionary(fc.constantFrom("a", "b"), tie("schema")), odd),
            required: fc.oneof(fc.constantFrom(["a"], ["a", "b"]), odd),
            items: fc.oneof(tie("schema"), odd),
            minItems: fc.oneof(fc.double(), odd),
            minimum: fc.oneof(fc.double(), odd),
            $ref: fc.constantFrom<unknown>("#", "#/properties/a", "#/enum", "#/x~1y", "x", 1),
          },
          { requiredKeys: [] },
        ),
      ),
    }));
    fc.assert(fc.property(schema, (each) => typeof JSON.stringify(schemaExample(each)) === "string"));
  });

  test("what it makes passes the schema it was made from", () => {
    const leaf = fc.oneof(
      fc.integer({ min: -99, max: 99 }).map((least): z.ZodType => z.int().min(least)),
      fc.constantFrom<z.ZodType>(z.boolean(), z.string(), z.enum(["p", "q"]), z.literal(7)),
    );
    const { schema } = fc.letrec<{ schema: z.ZodType; leaf: z.ZodType }>((tie) => ({
      leaf,
      schema: fc.oneof(
        { maxDepth: 4 },
        tie("leaf"),
        fc
          .dictionary(fc.string({ maxLength: 4 }), tie("schema"), { maxKeys: 4, noNullPrototype: true })
          .map((shape) => z.object(shape)),
        fc.tuple(tie("schema"), fc.nat(3)).map(([item, length]) => z.array(item).min(length)),
        tie("schema").map((inner) => inner.optional().nullable()),
      ),
    }));
    fc.assert(
      fc.property(schema, (type) => {
        const example = schemaExample(z.toJSONSchema(type));
        expect(type.safeParse(example).error?.issues ?? []).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});
