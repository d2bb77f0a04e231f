// What the look over the bytes counts is what parsing them makes.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { JsonShape } from "./json-shape.ts";

function shapeOf(json: string, sliceBytes = Number.POSITIVE_INFINITY) {
  const shape = new JsonShape(new TextEncoder().encode(json));
  while (!shape.isComplete) shape.advance(sliceBytes);
  const { deepest, parts, members } = shape;
  return { deepest, parts, members };
}

function count(value: unknown): { deepest: number; parts: number } {
  if (typeof value === "string") return { deepest: 0, parts: 1 };
  if (typeof value !== "object" || value === null) return { deepest: 0, parts: 0 };
  const inside = Object.values(value).map(count);
  const names = Array.isArray(value) ? 0 : Object.keys(value).length;
  return {
    deepest: 1 + Math.max(0, ...inside.map(({ deepest }) => deepest)),
    parts: 1 + names + inside.reduce((sum, { parts }) => sum + parts, 0),
  };
}

test("counts levels, parts and members of any object, in slices of any size", () => {
  const text = fc.string({ unit: fc.constantFrom("\\", '"', "{", "[", ":", ",", "é", "x"), maxLength: 120 });
  const value = fc.dictionary(text, fc.jsonValue({ maxDepth: 5, stringUnit: "binary" }));
  fc.assert(
    fc.property(value, fc.integer({ min: 1, max: 50 }), fc.nat(2), (object, sliceBytes, indent) => {
      const json = JSON.stringify(object, undefined, indent);
      expect(shapeOf(json, sliceBytes)).toEqual({ ...count(object), members: Object.keys(object).length });
    }),
    { numRuns: 1_000 },
  );
});

test("counts members that are written twice, escaped or not", () => {
  expect(shapeOf('{"model":1,"mod\\u0065l":{"a":2},"model" : 3}').members).toBe(3);
});

test("comes to an end in a text that has none", () => {
  expect(shapeOf('{"a":"b\\').members).toBe(1);
  expect(shapeOf(`{"a":"${"\\".repeat(101)}"`).members).toBe(1);
  expect(shapeOf("]]]]").deepest).toBe(0);
});
