// Errors in both directions.

import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../lib/json.ts";
import { decodeError, errorBody, errorEvent } from "./errors.ts";

describe("errors", () => {
  const cases: [status: number, type: string, code: string | undefined, expected: string][] = [
    [400, "invalid_request_error", undefined, "invalid_request_error"],
    [404, "invalid_request_error", undefined, "not_found_error"],
    [413, "invalid_request_error", undefined, "request_too_large"],
    [416, "invalid_request_error", undefined, "invalid_request_error"],
    [502, "invalid_request_error", undefined, "invalid_request_error"],
    [422, "x", undefined, "invalid_request_error"],
    [401, "authentication_error", undefined, "authentication_error"],
    [402, "x", undefined, "billing_error"],
    [429, "rate_limit_exceeded", "insufficient_quota", "billing_error"],
    [403, "permission_error", undefined, "permission_error"],
    [404, "model_not_found", undefined, "not_found_error"],
    [409, "x", undefined, "conflict_error"],
    [413, "payload_too_large", undefined, "request_too_large"],
    [429, "rate_limit_exceeded", undefined, "rate_limit_error"],
    [500, "internal_error", undefined, "api_error"],
    [502, "backend_error", undefined, "api_error"],
    [503, "service_unavailable", undefined, "overloaded_error"],
    [504, "backend_timeout", undefined, "timeout_error"],
    [529, "overloaded_error", undefined, "overloaded_error"],
  ];
  test.each(cases)("%d %s %p", (status, type, code, expected) => {
    const error = { status, type, code, message: "m", requestId: "r" };
    const body = { type: "error", error: { type: expected, message: "m" }, request_id: "r" };
    expect(errorBody(error)).toEqual(body);
    expect(errorEvent(error)).toBe(`event: error\ndata: ${JSON.stringify(body)}\n\n`);
  });

  test("details are passed on", () => {
    const error = { status: 400, type: "x", code: 1, message: "m", requestId: "r", details: { a: 1 } };
    expect(errorBody(error)).toMatchObject({ error: { details: { a: 1 } } });
  });

  const bodies: [title: string, status: number, body: unknown, expected: JsonObject][] = [
    [
      "the format's own",
      529,
      { type: "error", error: { type: "overloaded_error", message: "m" } },
      { status: 529, type: "overloaded_error", message: "m" },
    ],
    [
      "inside a 200",
      200,
      { error: { type: "rate_limit_error", message: "m" } },
      { status: 429, type: "rate_limit_error", message: "m" },
    ],
    [
      "with a code",
      400,
      { error: { message: "m", details: { error_code: "c" } } },
      { status: 400, message: "m", code: "c" },
    ],
    ["a text", 500, { error: "down" }, { status: 500, message: "down" }],
    ["a page", 502, "<html>", { status: 502, message: "The backend answered with status 502." }],
    ["nothing", 503, undefined, { status: 503, message: "The backend answered with status 503." }],
    ["null", 500, { error: null }, { status: 500, message: "The backend answered with status 500." }],
    [
      "of no known type",
      200,
      { error: { type: 5, message: {} } },
      { status: 502, message: "The backend answered with status 200." },
    ],
  ];
  test.each(bodies)("read: %s", (_title, status, body, expected) => {
    expect(decodeError(status, body) as unknown).toEqual(expected);
  });
});
