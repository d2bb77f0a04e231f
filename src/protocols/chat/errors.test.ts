// Errors: every shape that backends use.

import { describe, expect, test } from "bun:test";
import { decodeError } from "./errors.ts";

describe("what backends tell", () => {
  const cases: [status: number, body: unknown, expected: Record<string, unknown>][] = [
    [
      400,
      { error: { message: "m", type: "t", param: "p", code: "context_length_exceeded" } },
      { message: "m", status: 400, type: "t", code: "context_length_exceeded", param: "p" },
    ],
    [404, { error: { message: "m", code: 404, param: null } }, { message: "m", status: 404 }],
    [500, { error: { message: "m", code: 7 } }, { message: "m", status: 500, code: "7" }],
    [500, { error: "m" }, { message: "m", status: 500 }],
    [400, { object: "error", message: "m", type: "t", code: 400 }, { message: "m", status: 400, type: "t" }],
    [422, { detail: [{ loc: ["a"] }] }, { message: '[{"loc":["a"]}]', status: 422 }],
    [422, { detail: "m" }, { message: "m", status: 422 }],
    [400, [{ error: { message: "m" } }], { message: "m", status: 400 }],
    [400, { success: false, errors: [{ code: 5007, message: "m" }] }, { message: "m", status: 400, code: "5007" }],
    [500, "plain", { message: "plain", status: 500 }],
    [200, { error: { message: "m", code: 503 } }, { message: "m", status: 503 }],
    [
      200,
      { error: { message: "m", type: "overloaded_error" } },
      { message: "m", status: 529, type: "overloaded_error" },
    ],
    [
      200,
      { error: { message: "m", type: "invalid_request_error" } },
      { message: "m", status: 400, type: "invalid_request_error" },
    ],
  ];
  test.each(cases)("%d %j", (status, body, expected) => {
    expect(decodeError(status, body) as unknown).toEqual(expected);
  });

  test.each([
    [undefined],
    [null],
    [5],
    [{}],
    [{ error: null }],
    [{ error: {} }],
    [[]],
    [""],
    [{ error: { message: 5 } }],
  ])("nothing that can be read: %j", (body) => {
    const failure = decodeError(500, body);
    expect(failure.status).toBe(500);
    expect(failure.message).toContain("500");
  });
});
