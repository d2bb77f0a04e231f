// Arguments of calls against the schemas of their tools.

import { describe, expect, test } from "bun:test";
import { readArguments } from "./check-arguments.ts";

const SCHEMA = {
  type: "object",
  properties: {
    path: { type: "string" },
    line: { type: "integer" },
    mode: { enum: ["a", "b"] },
    many: { type: "array", items: { type: "object", properties: { name: { type: "string" } }, required: ["name"] } },
    either: { type: ["string", "null"] },
  },
  required: ["path"],
  additionalProperties: false,
};

const problemOf = (value: unknown, schema: Record<string, unknown> = SCHEMA) => {
  const read = readArguments(typeof value === "string" ? value : JSON.stringify(value), schema);
  return read.ok ? undefined : read.problem;
};

describe("arguments", () => {
  test.each([
    ["", "path is missing"],
    ["{", "they are no valid JSON"],
    ["[]", "they must be a JSON object, not array"],
    ["null", "they must be a JSON object, not null"],
    [{}, "path is missing"],
    [{ path: 1 }, "path must be string, not number"],
    [{ path: null }, "path must be string, not null"],
    [{ path: "a", line: 1.5 }, "line must be integer, not number"],
    [{ path: "a", mode: "c" }, 'mode must be one of "a", "b"'],
    [{ path: "a", many: [{ name: "x" }, {}] }, "many[1].name is missing"],
    [{ path: "a", other: 1 }, "other is not known; known are: path, line, mode, many, either"],
    [{ line: "1", many: {} }, "path is missing; line must be integer, not string; many must be array, not object"],
  ])("%j: %s", (value, problem) => {
    expect(problemOf(value)).toContain(problem);
  });

  test("that fit are read; null stands for what is left out", () => {
    const text = JSON.stringify({ path: "a", line: null, either: null, many: [] });
    expect(readArguments(text, SCHEMA)).toEqual({ ok: true, args: { path: "a", either: null, many: [] } });
    expect(readArguments("", { type: "object" })).toEqual({ ok: true, args: {} });
  });

  test("are left to the tool where the schema is not understood", () => {
    expect(
      problemOf({ a: { b: 1 } }, { $ref: "#/x", properties: { a: { anyOf: [{ type: "string" }] } } }),
    ).toBeUndefined();
    expect(problemOf({ a: 1 }, { type: 7, required: "a", properties: [] })).toBeUndefined();
  });

  test("are checked within bounds", () => {
    const many = { path: "a", many: [...Array(100_000)].map(() => ({})) };
    expect((problemOf(many) ?? "").split("; ")).toHaveLength(5);
    let schema: Record<string, unknown> = { type: "string" };
    let value: unknown = 1;
    for (let depth = 0; depth < 40; depth++) {
      schema = { type: "object", properties: { a: schema } };
      value = { a: value };
    }
    expect(problemOf(value, schema)).toBeUndefined();
  });
});
