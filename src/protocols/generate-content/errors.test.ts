// Errors of Google's APIs in their many wrappings.

import { describe, expect, test } from "bun:test";
import type { Failure } from "../../generation/result.ts";
import { decodeError } from "./errors.ts";

const STATUSES: [name: string, status: number, type: string, code: string][] = [
  ["INVALID_ARGUMENT", 400, "invalid_request_error", "INVALID_ARGUMENT"],
  ["FAILED_PRECONDITION", 400, "invalid_request_error", "FAILED_PRECONDITION"],
  ["OUT_OF_RANGE", 400, "invalid_request_error", "OUT_OF_RANGE"],
  ["UNAUTHENTICATED", 401, "authentication_error", "invalid_api_key"],
  ["PERMISSION_DENIED", 403, "permission_error", "PERMISSION_DENIED"],
  ["NOT_FOUND", 404, "not_found_error", "NOT_FOUND"],
  ["ABORTED", 409, "conflict_error", "ABORTED"],
  ["ALREADY_EXISTS", 409, "conflict_error", "ALREADY_EXISTS"],
  ["RESOURCE_EXHAUSTED", 429, "rate_limit_exceeded", "rate_limit_exceeded"],
  ["INTERNAL", 500, "server_error", "INTERNAL"],
  ["UNKNOWN", 500, "server_error", "UNKNOWN"],
  ["DATA_LOSS", 500, "server_error", "DATA_LOSS"],
  ["UNAVAILABLE", 503, "overloaded_error", "UNAVAILABLE"],
  ["DEADLINE_EXCEEDED", 504, "timeout_error", "DEADLINE_EXCEEDED"],
];

describe("decodeError", () => {
  test.each(STATUSES)("%s inside of a 200", (name, status, type, code) => {
    const failure: Failure = { message: "m", status, type, code };
    expect(decodeError(200, { error: { message: "m", status: name } })).toEqual(failure);
  });

  test("the HTTP status counts", () => {
    expect(decodeError(429, { error: { code: 400, message: "m", status: "INVALID_ARGUMENT" } }).status).toBe(429);
    expect(decodeError(200, { error: { code: 418, message: "m" } })).toEqual({ message: "m", status: 418 });
    expect(decodeError(200, { error: { code: 7, message: "m" } }).status).toBe(502);
  });

  test("a wrong key is told as an invalid argument", () => {
    const details = [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }];
    const body = { error: { code: 400, message: "API key not valid.", status: "INVALID_ARGUMENT", details } };
    expect(decodeError(400, body)).toMatchObject({
      status: 401,
      type: "authentication_error",
      code: "invalid_api_key",
    });
  });

  test("when to come back", () => {
    const body = (retryDelay: unknown) => ({ error: { status: "RESOURCE_EXHAUSTED", details: [{ retryDelay }] } });
    expect(decodeError(429, body("12s")).retryAfterMs).toBe(12_000);
    expect(decodeError(429, body("0.4567s")).retryAfterMs).toBe(457);
    for (const odd of ["12", "s", null, 12, "-1s"]) expect(decodeError(429, body(odd)).retryAfterMs).toBeUndefined();
  });

  test("the field at fault and a prompt that is too long", () => {
    const details = [{ fieldViolations: [{ field: "", description: "d" }, { field: "tools[0]" }] }];
    expect(decodeError(400, { error: { message: "m", status: "INVALID_ARGUMENT", details } }).param).toBe("tools[0]");
    const message = "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).";
    expect(decodeError(400, { error: { message, status: "INVALID_ARGUMENT" } }).code).toBe("context_length_exceeded");
  });

  test("a list of one, a bare error, and text", () => {
    const error = { message: "m", status: "UNAVAILABLE" };
    expect(decodeError(503, [{ error }]).message).toBe("m");
    expect(decodeError(503, error)).toMatchObject({ message: "m", type: "overloaded_error" });
    expect(decodeError(503, { error: "m" })).toEqual({ message: "m", status: 503 });
    expect(decodeError(503, "m")).toEqual({ message: "m", status: 503 });
  });

  test("never throws", () => {
    for (const body of [
      undefined,
      null,
      1,
      [],
      [null],
      {},
      { error: null },
      { error: { details: "x" } },
      { error: { details: [null, { fieldViolations: 1 }] } },
    ]) {
      const failure = decodeError(500, body);
      expect(failure.status).toBe(500);
      expect(failure.message).not.toBe("");
    }
  });
});
