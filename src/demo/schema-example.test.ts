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
