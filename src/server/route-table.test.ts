// Routing by method and path: what is found, and what is said when nothing is.

import { describe, expect, test } from "bun:test";
import { GatewayError } from "../errors/gateway-error.ts";
import { createRouteTable, pathOf } from "./route-table.ts";

const table = createRouteTable([
  { method: "GET", path: "/v1/models", handler: "list models" },
  { method: "GET", path: "/v1/models/*", handler: "one model" },
  { method: "POST", path: "/v1/chat/completions", handler: "chat" },
  { method: "GET", path: "/both", handler: "read both" },
  { method: "PUT", path: "/both", handler: "write both" },
]);

function refusal(method: string, path: string): GatewayError {
  try {
    table.match(method, path);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error(`${method} ${path} was found`);
}

describe("what is found", () => {
  test.each([
    ["GET", "/v1/models", "list models", ""],
    ["HEAD", "/v1/models", "list models", ""],
    ["POST", "/v1/chat/completions", "chat", ""],
    ["GET", "/both", "read both", ""],
    ["PUT", "/both", "write both", ""],
    ["GET", "/v1/models/gpt", "one model", "gpt"],
    ["HEAD", "/v1/models/gpt", "one model", "gpt"],
    ["GET", "/v1/models/vendor/model:7b", "one model", "vendor/model:7b"],
    ["GET", "/v1/models/vendor%2Fmodel%3A7b%20x", "one model", "vendor/model:7b x"],
    ["GET", "/v1/models/gr%C3%BC%C3%9F", "one model", "grüß"],
    ["GET", "/v1/models/a/", "one model", "a/"],
  ])("%s %s is '%s' with '%s'", (method, path, handler, parameter) => {
    expect(table.match(method, path)).toEqual({ handler, parameter });
  });
});

describe("what is not", () => {
  test.each([["/"], [""], ["/v1"], ["/v1/models/"], ["/v1/modelsx"], ["/V1/MODELS"], ["/constructor"]])(
    "nothing is at %j",
    (path) => {
      expect(refusal("GET", path)).toMatchObject({ status: 404, type: "not_found" });
    },
  );

  test("a near path is suggested", () => {
    expect(refusal("POST", "/v1/chat/completion").message).toBe(
      "There is nothing at /v1/chat/completion. Did you mean /v1/chat/completions?",
    );
    expect(refusal("POST", "/something/else/entirely").message).toBe("There is nothing at /something/else/entirely.");
  });

  test("an endless path is not repeated whole", () => {
    expect(refusal("GET", `/${"x".repeat(5_000)}`).message.length).toBeLessThan(300);
  });

  test.each([
    ["POST", "/v1/models", "GET, HEAD"],
    ["DELETE", "/v1/models/gpt", "GET, HEAD"],
    ["GET", "/v1/chat/completions", "POST"],
    ["HEAD", "/v1/chat/completions", "POST"],
    ["OPTIONS", "/v1/chat/completions", "POST"],
    ["PATCH", "/both", "GET, HEAD, PUT"],
    ["get", "/both", "GET, HEAD, PUT"],
  ])("%s %s is refused with what is allowed", (method, path, allow) => {
    const error = refusal(method, path);
    expect(error).toMatchObject({ status: 405, type: "method_not_allowed", headers: { Allow: allow } });
    expect(error.message).toContain(allow);
  });

  test.each([["/v1/models/%"], ["/v1/models/%zz"], ["/v1/models/%ff"]])("%s is not decodable", (path) => {
    expect(refusal("GET", path)).toMatchObject({ status: 400, code: "invalid_value" });
  });
});

test("the path of a URL is what stands between host and query", () => {
  const urls: [url: string, path: string][] = [
    ["http://host/a/b?c=/d", "/a/b"],
    ["http://host:8080/", "/"],
    ["http://host", "/"],
    ["http://host/?a", "/"],
    ["http://[::1]:80/v1/models/x%2Fy", "/v1/models/x%2Fy"],
    ["http://host//double", "//double"],
  ];
  expect(urls.map(([url]) => pathOf(url))).toEqual(urls.map(([, path]) => path));
});
