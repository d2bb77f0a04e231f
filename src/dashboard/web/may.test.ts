// Requests that a role may not send.

import { expect, test } from "bun:test";
import { isDenied } from "./may.ts";

const DENIED = ["PUT /admin/backends/{name}/models", "POST /admin/backends", "PUT /admin/config/{section...}"];

test("a request is denied by its method and path, whatever its query is", () => {
  const denied = (method: string, path: string) => isDenied({ method, path }, DENIED);
  expect(denied("PUT", "admin/backends/a%2Fb/models")).toBe(true);
  expect(denied("PUT", "admin/backends/a")).toBe(false);
  expect(denied("POST", "admin/backends?dry_run=true")).toBe(true);
  expect(denied("GET", "admin/backends")).toBe(false);
  expect(denied("PUT", "admin/config/fallback/chains")).toBe(true);
  expect(denied("PUT", "admin/config")).toBe(false);
});
