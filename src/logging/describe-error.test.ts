// What a log line says of anything that can be thrown.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { describeError } from "./describe-error.ts";

describe("an error", () => {
  test("has its type, its message and its stack, and plain values of its own", () => {
    const error = Object.assign(new RangeError("too much"), { code: "E_MUCH", request: { headers: "many" } });
    expect(describeError(error)).toEqual({
      type: "RangeError",
      message: "too much",
      stack: error.stack,
      code: "E_MUCH",
    });
  });

  test("is told with its causes", () => {
    const cause = new TypeError("no such host");
    const error = new Error("cannot connect", { cause });
    expect(describeError(error)).toMatchObject({
      message: "cannot connect: no such host",
      stack: `${error.stack}\ncaused by: ${cause.stack}`,
    });
  });

  test("that causes itself is told all the same", () => {
    const error = new Error("round");
    error.cause = error;
    expect(describeError(error)).toMatchObject({ message: expect.stringMatching(/^round(: round)+$/) });
  });
});

test("what is no error can be written as JSON, whatever was thrown", () => {
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withSparseArray: true }), (thrown) => {
      JSON.stringify({ err: describeError(thrown) });
    }),
  );
  expect(describeError("just a text")).toBe("just a text");
});
