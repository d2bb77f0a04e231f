// Coercion of environment text by the schema of its key.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { JsonSchema } from "../schema/schema-export.ts";
import { coerceText } from "./coerce.ts";

const STRING: JsonSchema = { type: "string" };
const INTEGER: JsonSchema = { type: "integer" };
const NUMBER: JsonSchema = { type: "number" };
const BOOLEAN: JsonSchema = { type: "boolean" };
const LIST: JsonSchema = { type: "array", items: INTEGER };
const CHOICE: JsonSchema = { anyOf: [STRING, { type: "array", items: STRING }] };
const MAPPING: JsonSchema = { type: "object", additionalProperties: STRING };

describe("coerceText", () => {
  test.each<[JsonSchema, string, unknown]>([
    [STRING, "5", "5"],
    [STRING, " true ", " true "],
    [STRING, "", ""],
    [INTEGER, " 5 ", 5],
    [INTEGER, "five", "five"],
    [INTEGER, "", ""],
    [INTEGER, "0x10", "0x10"],
    [NUMBER, "-0.5", -0.5],
    [NUMBER, "1e3", 1000],
    [NUMBER, "Infinity", "Infinity"],
    [BOOLEAN, "true", true],
    [BOOLEAN, "OFF", false],
    [BOOLEAN, "1", true],
    [BOOLEAN, "maybe", "maybe"],
    [LIST, "200, 204", [200, 204]],
    [LIST, "[200]", [200]],
    [LIST, "200", [200]],
    [LIST, "", []],
    [CHOICE, "127.0.0.1:80", "127.0.0.1:80"],
    [CHOICE, "[::1]:80", "[::1]:80"],
    [CHOICE, "[::1]:80, unix:/a", ["[::1]:80", "unix:/a"]],
    [CHOICE, '["a:1"]', ["a:1"]],
    [MAPPING, '{"a":"b"}', { a: "b" }],
    [MAPPING, "{a", "{a"],
    [{}, "anything", "anything"],
  ])("%j: %j becomes %j", (schema, text, expected) => {
    expect(coerceText(schema, text)).toEqual(expected);
  });

  test("property: a string key takes every text as it is", () => {
    fc.assert(fc.property(fc.string(), (text) => coerceText(STRING, text) === text));
  });

  test("property: numbers, booleans and JSON lists survive being written as text", () => {
    const finite = fc.double({ noNaN: true, noDefaultInfinity: true }).filter((number) => !Object.is(number, -0));
    fc.assert(fc.property(finite, (number) => Object.is(coerceText(NUMBER, String(number)), number)));
    fc.assert(fc.property(fc.boolean(), (value) => coerceText(BOOLEAN, String(value)) === value));
    fc.assert(
      fc.property(fc.array(fc.integer()), (list) => {
        expect(coerceText(LIST, JSON.stringify(list))).toEqual(list);
      }),
    );
  });

  test("property: never throws", () => {
    const schema = fc.constantFrom(STRING, INTEGER, NUMBER, BOOLEAN, LIST, CHOICE, MAPPING, {});
    fc.assert(fc.property(schema, fc.string(), (chosen, text) => void coerceText(chosen, text)));
  });
});
