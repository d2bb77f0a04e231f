// What answers a target, and what is said when nothing does.

import { describe, expect, test } from "bun:test";
import { GatewayError } from "../errors/gateway-error.ts";
import type { RequestTarget } from "./request-target.ts";
import { createRouteTable } from "./route-table.ts";

const table = createRouteTable(
  [
    { method: "GET", path: "/v1/models", handler: "list models" },
    { method: "GET", path: "/v1/models/{model...}", handler: "one model" },
    { method: "POST", path: "/v1/chat/completions", handler: "chat" },
    { method: "GET", path: "/both", handler: "read both" },
    { method: "PUT", path: "/both", handler: "write both" },
  ],
  { notBuilt: ["/v1/files"] },
);

const named = (route: string): RequestTarget => ({ route, parameters: {}, path: route, flaw: undefined });
const nowhere = (path: string): RequestTarget => ({ ...named(path), route: undefined });

function refusal(method: string, target: RequestTarget): GatewayError {
  try {
    table.match(method, target);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error(`${method} ${target.path} was found`);
}

test("every path is listed once", () => {
  expect(table.paths).toEqual(["/v1/models", "/v1/models/{model...}", "/v1/chat/completions", "/both"]);
});

test.each([
  ["GET", "/v1/models", "list models"],
  ["HEAD", "/v1/models", "list models"],
  ["POST", "/v1/chat/completions", "chat"],
  ["GET", "/both", "read both"],
  ["PUT", "/both", "write both"],
  ["GET", "/v1/models/{model...}", "one model"],
  ["HEAD", "/v1/models/{model...}", "one model"],
])("%s %s is '%s'", (method, route, handler) => {
  expect(table.match(method, named(route)).handler).toBe(handler);
});

describe("what is not there", () => {
  test.each([["/"], ["/v1"], ["/v1/models/"], ["/v1/modelsx"], ["/V1/MODELS"], ["/constructor"], ["/v1/models"]])(
    "a target that names no path is 404, whatever its path is: %s",
    (path) => {
      expect(refusal("GET", nowhere(path))).toMatchObject({ status: 404, type: "not_found" });
      expect(table.at(nowhere(path)).size).toBe(0);
    },
  );

  test("a near path is suggested", () => {
    expect(refusal("POST", nowhere("/v1/chat/completion")).message).toBe(
      "There is nothing at /v1/chat/completion. Did you mean /v1/chat/completions?",
    );
    expect(refusal("POST", nowhere("/something/else/entirely")).message).toBe(
      "There is nothing at /something/else/entirely.",
    );
  });

  test("so is one of another table, which this one does not answer", () => {
    const other = createRouteTable(
      table.paths.map((path) => ({ method: "GET", path, handler: path })),
      {
        elsewhere: ["/admin/config"],
      },
    );
    expect(() => other.match("GET", nowhere("/admin/confi"))).toThrow("Did you mean /admin/config?");
    expect(() => other.match("GET", nowhere("/admin/config"))).toThrow("There is nothing at /admin/config");
    expect(other.paths).not.toContain("/admin/config");
  });

  test("a path that other servers have says that it is not in this release", () => {
    for (const path of ["/v1/files", "/v1/files/abc"]) {
      expect(refusal("POST", nowhere(path))).toMatchObject({ status: 404, message: `${path} is not in this release.` });
    }
    expect(refusal("POST", nowhere("/v1/filesystem")).message).not.toContain("release");
  });

  test("an endless path is not repeated whole", () => {
    expect(refusal("GET", nowhere(`/${"x".repeat(5_000)}`)).message.length).toBeLessThan(300);
  });
});

test("a target that is not in order is 400, also where it names a path", () => {
  const target = { ...named("/v1/models"), flaw: "The path is odd." };
  expect(refusal("GET", target)).toMatchObject({ status: 400, code: "invalid_value", message: "The path is odd." });
  expect(table.at(target).size).toBe(0);
});

test.each([
  ["POST", "/v1/models", "GET, HEAD"],
  ["DELETE", "/v1/models/{model...}", "GET, HEAD"],
  ["GET", "/v1/chat/completions", "POST"],
  ["HEAD", "/v1/chat/completions", "POST"],
  ["OPTIONS", "/v1/chat/completions", "POST"],
  ["PATCH", "/both", "GET, HEAD, PUT"],
  ["get", "/both", "GET, HEAD, PUT"],
])("%s %s is refused with what is allowed", (method, route, allow) => {
  const error = refusal(method, named(route));
  expect(error).toMatchObject({ status: 405, type: "method_not_allowed", headers: { Allow: allow } });
  expect(error.message).toContain(allow);
});
