// The standard error shape as a body and inside a stream.

import { describe, expect, test } from "bun:test";
import { encodeErrorBody, encodeErrorEvent, encodeFailure } from "./standard-error.ts";

describe("what clients get", () => {
  const error = { status: 404, message: "m", type: "model_not_found", code: undefined, requestId: "r" };

  test("a body without empty members", () => {
    expect(encodeErrorBody(error)).toEqual({
      error: { message: "m", type: "model_not_found", code: 404, request_id: "r" },
    });
    expect(Object.keys(encodeErrorBody(error).error as object)).toEqual(["message", "type", "code", "request_id"]);
    expect(encodeErrorBody({ ...error, code: "c", param: "p", details: { a: 1 } })).toEqual({
      error: { message: "m", type: "model_not_found", code: "c", param: "p", details: { a: 1 }, request_id: "r" },
    });
  });

  test("an event of its own", () => {
    expect(encodeErrorEvent(error)).toBe(`data: ${JSON.stringify(encodeErrorBody(error))}\n\n`);
    expect(encodeFailure({ message: "m", status: 529 })).toBe(
      'data: {"error":{"message":"m","type":"backend_error","code":529}}\n\n',
    );
  });
});
