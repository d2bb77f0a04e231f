// Error bodies of backends in their many shapes, and what the client gets of them.

import { describe, expect, test } from "bun:test";
import { forwardableErrorBody, standardError } from "./error-body.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

function forwarded(status: number, body: string): unknown {
  const result = forwardableErrorBody(status, bytes(body));
  return JSON.parse(typeof result === "string" ? result : new TextDecoder().decode(result));
}

describe("what the client gets", () => {
  test("a body of the standard shape passes as the very bytes that came", () => {
    const body = bytes('{ "error": {"message":"no","type":"t","param":null,"code":null,"extra":[1]} , "more": 1 }');
    expect(forwardableErrorBody(400, body)).toBe(body);
  });

  const cases: [title: string, status: number, body: string, error: Record<string, unknown>][] = [
    [
      "a plain text under error",
      404,
      '{"error":"model not found"}',
      { code: 404, type: "invalid_request_error", message: "model not found" },
    ],
    [
      "older vLLM",
      400,
      '{"object":"error","message":"too long","type":"BadRequestError","param":null,"code":400}',
      { code: 400, type: "BadRequestError", message: "too long", param: null },
    ],
    ["FastAPI", 422, '{"detail":"Not Found"}', { code: 422, type: "invalid_request_error", message: "Not Found" }],
    [
      "FastAPI with a list",
      422,
      '{"detail":[{"loc":["body"],"msg":"field required"}]}',
      { code: 422, type: "invalid_request_error", message: '[{"loc":["body"],"msg":"field required"}]' },
    ],
    ["HTML", 502, "<html>Bad Gateway</html>", { code: 502, type: "backend_error", message: "Backend error: HTTP 502" }],
    ["nothing", 401, "", { code: 401, type: "invalid_request_error", message: "Client error: HTTP 401" }],
    ["JSON that is no object", 500, '["x"]', { code: 500, type: "backend_error", message: "Backend error: HTTP 500" }],
    [
      "an error without a message",
      500,
      '{"error":{"code":1}}',
      { code: 500, type: "backend_error", message: "Backend error: HTTP 500" },
    ],
    [
      "an error without a type",
      400,
      '{"error":{"message":"no","code":"c","param":"p"}}',
      { code: "c", type: "invalid_request_error", message: "no", param: "p" },
    ],
    ["cut JSON", 500, '{"error":{"mess', { code: 500, type: "backend_error", message: "Backend error: HTTP 500" }],
  ];
  test.each(cases)("%s", (_title, status, body, error) => {
    expect(forwarded(status, body)).toEqual({ error });
  });

  test("499 is the client's, 500 the backend's", () => {
    expect(forwarded(499, "")).toMatchObject({ error: { message: "Client error: HTTP 499" } });
    expect(forwarded(500, "")).toMatchObject({ error: { message: "Backend error: HTTP 500" } });
  });
});

test("the message is found in every shape", () => {
  const messageOf = (body: string) => standardError(500, bytes(body)).message;
  expect(messageOf('{"error":{"message":"a"}}')).toBe("a");
  expect(messageOf('{"error":"b"}')).toBe("b");
  expect(messageOf('{"message":"c"}')).toBe("c");
  expect(messageOf("<html>")).toBe("Backend error: HTTP 500");
});
