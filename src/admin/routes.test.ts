// Every admin path stands behind the one door, and nothing else has an admin path.

import { describe, expect, test } from "bun:test";
import { ADMIN_ENDPOINTS, ENDPOINTS } from "../../test/support/endpoints.ts";
import { ADMIN_PATHS } from "./paths.ts";

const others = ENDPOINTS.filter((endpoint) => !ADMIN_ENDPOINTS.includes(endpoint));

describe("admin routes", () => {
  test("all have the access admin", () => {
    expect(ADMIN_ENDPOINTS.length).toBeGreaterThan(35);
    expect(ADMIN_ENDPOINTS.filter(({ access }) => access !== "admin").map(({ path }) => path)).toEqual([]);
    expect(ADMIN_ENDPOINTS.filter(({ path }) => !/^\/admin(\/|$)/.test(path)).map(({ path }) => path)).toEqual([]);
  });

  test("every path that the server knows leads to one of them", () => {
    expect([...new Set(ADMIN_ENDPOINTS.map(({ path }) => path))].toSorted()).toEqual([...ADMIN_PATHS].toSorted());
  });

  test("nothing else answers below /admin", () => {
    expect(others.filter(({ path }) => path.startsWith("/admin")).map(({ path }) => path)).toEqual([]);
    expect(others.filter(({ access }) => access === "admin").map(({ path }) => path)).toEqual([]);
  });
});
