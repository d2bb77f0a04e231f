// The checks of request fields: what passes, and what a refusal says.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { GatewayError } from "../errors/gateway-error.ts";
import type { JsonObject } from "../lib/json.ts";
import {
  checkArray,
  checkBoolean,
  checkDepth,
  checkNumbers,
  checkObject,
  checkStop,
  checkString,
  describe as describeValue,
  NO_MAXIMUM,
  requireModel,
} from "./fields.ts";

/** The refusal of a check as its parts. */
function refusal(check: () => unknown): { status: number; code: unknown; param: string | undefined; message: string } {
  try {
    check();
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { status: error.status, code: error.code, param: error.param, message: error.message };
  }
  throw new Error("the check refused nothing");
}

test("values are described in the words of JSON", () => {
  const words = [null, [], {}, "", 0, false].map(describeValue);
  expect(words).toEqual(["null", "an array", "an object", "a string", "a number", "a boolean"]);
});

describe("model", () => {
  test("is handed out as it came", () => {
    expect(requireModel({ model: " vendor/Model:7b " })).toBe(" vendor/Model:7b ");
  });

  test.each([[{}], [{ model: null }]])("left out as in %j, it is a missing parameter", (body: JsonObject) => {
    const error = refusal(() => requireModel(body));
    expect(error).toMatchObject({ status: 400, code: "missing_required_parameter", param: "model" });
    expect(error.message).toStartWith("model is required");
  });

  test.each([
    [5, "a number"],
    [["m"], "an array"],
    [{ id: "m" }, "an object"],
    [false, "a boolean"],
  ])("%j is refused with what it is", (model, words) => {
    const error = refusal(() => requireModel({ model }));
    expect(error).toMatchObject({ status: 400, code: "invalid_value", param: "model" });
    expect(error.message).toBe(`model: expected a string, got ${words}.`);
  });

  test("must not be empty", () => {
    expect(refusal(() => requireModel({ model: "" })).message).toContain("must not be empty");
  });
});

describe("numbers", () => {
  const rule = { field: "n", minimum: 1, maximum: 128, integer: true };

  test.each([[1], [128], [null], [undefined]])("%p passes", (n) => {
    checkNumbers({ n }, [rule]);
  });

  test.each([
    [0, "n: expected an integer from 1 to 128, got 0."],
    [129, "n: expected an integer from 1 to 128, got 129."],
    [1.5, "n: expected an integer from 1 to 128, got 1.5."],
    ["2", "n: expected an integer, got a string."],
    [true, "n: expected an integer, got a boolean."],
    [[1], "n: expected an integer, got an array."],
  ])("%p is refused", (n, message) => {
    expect(refusal(() => checkNumbers({ n }, [rule]))).toEqual({
      status: 400,
      code: "invalid_value",
      param: "n",
      message,
    });
  });

  test("a number may be a fraction when no integer is asked for", () => {
    const temperature = { field: "temperature", minimum: 0, maximum: 2 };
    checkNumbers({ temperature: 0.7 }, [temperature]);
    const { message } = refusal(() => checkNumbers({ temperature: 2.1 }, [temperature]));
    expect(message).toBe("temperature: expected a number from 0 to 2, got 2.1.");
  });

  test("without a maximum only the minimum is told", () => {
    const tokens = { field: "max_tokens", minimum: 1, maximum: NO_MAXIMUM, integer: true };
    checkNumbers({ max_tokens: 1e15 }, [tokens]);
    const { message } = refusal(() => checkNumbers({ max_tokens: 0 }, [tokens]));
    expect(message).toBe("max_tokens: expected an integer of at least 1, got 0.");
  });

  test("property: exactly the numbers within the bounds pass", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, min: -300, max: 300 }), fc.boolean(), (value, integer) => {
        const allowed = value >= 1 && value <= 128 && (!integer || Number.isInteger(value));
        const check = () => checkNumbers({ n: value }, [{ ...rule, integer }]);
        if (allowed) check();
        else expect(refusal(check).param).toBe("n");
      }),
    );
  });
});

describe("types", () => {
  const checks: [name: string, check: (body: JsonObject, field: string) => unknown, good: unknown, wanted: string][] = [
    ["string", checkString, "text", "a string"],
    ["object", checkObject, {}, "an object"],
    ["array", checkArray, [], "an array"],
    ["boolean", checkBoolean, true, "true or false"],
  ];
  const samples: [value: unknown, words: string][] = [
    ["text", "a string"],
    [{}, "an object"],
    [[], "an array"],
    [true, "a boolean"],
    [1, "a number"],
  ];
  for (const [name, check, good, wanted] of checks) {
    test(`${name}: its own kind, null and absence pass, every other kind is refused`, () => {
      for (const value of [good, null, undefined]) check({ f: value }, "f");
      check({}, "f");
      for (const [value, words] of samples) {
        if (typeof value === typeof good && Array.isArray(value) === Array.isArray(good)) continue;
        expect(refusal(() => check({ f: value }, "f"))).toEqual({
          status: 400,
          code: "invalid_value",
          param: "f",
          message: `f: expected ${wanted}, got ${words}.`,
        });
      }
    });
  }

  test("a flag that is left out is false", () => {
    expect([{}, { f: null }, { f: false }, { f: true }].map((body) => checkBoolean(body, "f"))).toEqual([
      false,
      false,
      false,
      true,
    ]);
  });
});

describe("stop", () => {
  test.each([["x"], [["x", "y"]], [[]], [null], [undefined]])("%j passes", (stop) => {
    checkStop({ stop });
  });

  test.each([
    [7, "stop", "stop: expected a string or an array of strings, got a number."],
    [{}, "stop", "stop: expected a string or an array of strings, got an object."],
    [["x", 7], "stop[1]", "stop[1]: expected a string, got a number."],
    [[null], "stop[0]", "stop[0]: expected a string, got null."],
  ])("%j is refused where it is wrong", (stop, param, message) => {
    expect(refusal(() => checkStop({ stop }))).toEqual({ status: 400, code: "invalid_value", param, message });
  });
});

test("a body that is nested without end is refused with its field, in no time and without a stack overflow", () => {
  const deep = JSON.parse(`{"tools":${"[".repeat(50_000)}${"]".repeat(50_000)}}`) as Record<string, unknown>;
  expect(() => checkDepth(deep)).toThrow("tools: is nested deeper than 200 levels.");
  expect(() => checkDepth({ a: JSON.parse(`${'{"b":'.repeat(199)}1${"}".repeat(199)}`) })).not.toThrow();
});
