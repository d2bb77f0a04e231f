// Thrown values as answers in the standard error shape.

import { describe, expect, test } from "bun:test";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { errorBody, errorResponse, toGatewayError } from "./error-response.ts";

describe("error answers", () => {
  test("a refusal is told as it is", () => {
    const error = new GatewayError(ERRORS.invalidRequest, "temperature: too hot.", {
      param: "temperature",
      details: { maximum: 2 },
    });
    expect(toGatewayError(error)).toBe(error);
    expect(JSON.parse(errorBody(error, "id-1"))).toEqual({
      error: {
        message: "temperature: too hot.",
        type: "invalid_request_error",
        code: "invalid_value",
        param: "temperature",
        details: { maximum: 2 },
        request_id: "id-1",
      },
    });
  });

  test("fields that say nothing are left out", () => {
    const { error } = JSON.parse(errorBody(new GatewayError(ERRORS.routeNotFound, "no"), "id-1"));
    expect(Object.keys(error).sort()).toEqual(["code", "message", "request_id", "type"]);
  });

  test.each([
    [new Error("secret of the house")],
    ["secret of the house"],
    [undefined],
    [null],
    [{ message: "secret" }],
  ])("anything else is an unexpected error that shows nothing of it (%#)", (thrown) => {
    const error = toGatewayError(thrown);
    expect(error).toMatchObject({ status: 500, type: "internal_error" });
    expect(error.cause).toBe(thrown);
    expect(errorBody(error, "id-1")).not.toContain("secret");
  });

  test("status, headers and body come together; the error's own headers win, the type is JSON", async () => {
    const error = new GatewayError(ERRORS.methodNotAllowed, "no", { headers: { Allow: "GET", "X-Both": "error" } });
    const response = errorResponse(error, "id-1", { "X-Request-ID": "id-1", "X-Both": "given", "Content-Type": "x/y" });
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toBe("GET");
    expect(response.headers.get("x-both")).toBe("error");
    expect(response.headers.get("x-request-id")).toBe("id-1");
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.text()).toBe(errorBody(error, "id-1"));
  });
});
