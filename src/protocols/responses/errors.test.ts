// Errors of backends as failures, errors for clients as bodies and events.

import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../lib/json.ts";
import { readEvents } from "../sse.ts";
import { decodeError, errorBody, errorEvent, failureCode } from "./errors.ts";

const ERROR = { status: 404, message: "No such model", type: "model_not_found", code: 404, requestId: "r" };

test("a body in the standard shape", () => {
  expect(errorBody({ ...ERROR, param: "model", details: { a: 1 } })).toEqual({
    error: {
      message: "No such model",
      type: "model_not_found",
      code: 404,
      param: "model",
      details: { a: 1 },
      request_id: "r",
    },
  });
});

test("a flat event with a code that is a string", () => {
  const [event] = readEvents(errorEvent({ ...ERROR, code: undefined }));
  expect(event?.name).toBe("error");
  expect(JSON.parse(event?.data ?? "")).toEqual({
    type: "error",
    code: "model_not_found",
    message: "No such model",
    param: null,
    sequence_number: 0,
  });
  expect(errorEvent(ERROR)).toContain('"code":"404"');
  expect(errorEvent(ERROR)).toEndWith("\n\n");
});

test("the number of an event goes on behind those that were sent", () => {
  const number = (sent?: string) => {
    const [event] = readEvents(errorEvent(ERROR, sent === undefined ? undefined : Buffer.from(sent)));
    return (JSON.parse(event?.data ?? "") as { sequence_number: number }).sequence_number;
  };
  expect(number('data: {"sequence_number":7}\n\nevent: x\ndata: {"sequence_number":8}\n\n: ping\n\ndata: {}\n\n')).toBe(
    9,
  );
  expect(number(": ping\n\n")).toBe(0);
  expect(number()).toBe(0);
});

test.each([
  [{ message: "", status: 429 }, "rate_limit_exceeded"],
  [{ message: "", status: 400 }, "invalid_prompt"],
  [{ message: "", status: 529 }, "server_error"],
  [{ message: "", status: 400, code: "context_length_exceeded" }, "context_length_exceeded"],
])("code of %j", (failure, code) => {
  expect(failureCode(failure)).toBe(code);
});

describe("errors of backends", () => {
  const cases: [number, unknown, JsonObject][] = [
    [
      400,
      { error: { message: "m", type: "invalid_request_error", code: "c", param: "p" } },
      { message: "m", status: 400, type: "invalid_request_error", code: "c", param: "p" },
    ],
    [500, { error: "broken" }, { message: "broken", status: 500 }],
    [422, { detail: "wrong" }, { message: "wrong", status: 422 }],
    [502, "Bad gateway", { message: "Bad gateway", status: 502 }],
    [503, null, { message: "The backend answered 503.", status: 503 }],
    [503, [1], { message: "The backend answered 503.", status: 503 }],
    [
      200,
      { error: { message: "m", code: "insufficient_quota" } },
      { message: "m", status: 429, type: "insufficient_quota", code: "insufficient_quota" },
    ],
    [200, { error: { message: "m", code: 404 } }, { message: "m", status: 404, code: "404" }],
    [200, { error: { message: 3, type: null } }, { message: "The backend reported an error.", status: 502 }],
  ];
  test.each(cases)("%p %j", (status, body, failure) => {
    expect(decodeError(status, body)).toEqual(failure as never);
  });
});
