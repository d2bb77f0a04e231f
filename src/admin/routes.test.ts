// Every admin path stands behind the one door, and nothing else has an admin path.

import { describe, expect, test } from "bun:test";
import { ADMIN_ENDPOINTS, ENDPOINTS } from "../../test/support/endpoints.ts";

// Scrapers have credentials of their own.
const isMetrics = ({ path }: { path: string }) => path === "/metrics";
const admin = ADMIN_ENDPOINTS.filter((endpoint) => !isMetrics(endpoint));
const others = ENDPOINTS.filter((endpoint) => !admin.includes(endpoint));

describe("admin routes", () => {
  test("all have the access admin", () => {
    expect(admin.length).toBeGreaterThan(35);
    expect(admin.filter(({ access }) => access !== "admin").map(({ path }) => path)).toEqual([]);
    expect(admin.filter(({ path }) => !/^\/admin(\/|$)/.test(path)).map(({ path }) => path)).toEqual([]);
  });

  test("nothing else answers below /admin", () => {
    expect(others.filter(({ path }) => path.startsWith("/admin")).map(({ path }) => path)).toEqual([]);
    expect(others.filter(({ access }) => access === "admin").map(({ path }) => path)).toEqual([]);
  });
});
