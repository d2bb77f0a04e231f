// Every admin path stands behind the one door, and nothing else has an admin path.

import { describe, expect, test } from "bun:test";
import { publicRoutes } from "../api/routes.ts";
import { openApiRoutes } from "../openapi/document.ts";
import { adminRoutes } from "./routes.ts";
import { type TelemetryParts, telemetryRoutes } from "./telemetry-routes.ts";

/** Stands for whatever routes are made of: only their list is looked at. */
const hollow: unknown = new Proxy(() => hollow, {
  get: (_, key) => (key === Symbol.iterator ? () => [][Symbol.iterator]() : hollow),
});

/** The path of the metrics comes from the configuration. */
const settings: unknown = { settings: () => ({ metrics: { endpoint: "/metrics" } }) };
const telemetry = telemetryRoutes(settings as TelemetryParts);
// Scrapers have credentials of their own.
const isMetrics = ({ path }: { path: string }) => path === "/metrics";
const admin = [
  ...telemetry.filter((route) => !isMetrics(route)),
  ...adminRoutes(hollow as Parameters<typeof adminRoutes>[0]),
];
const others = [
  ...telemetry.filter(isMetrics),
  ...publicRoutes(hollow as Parameters<typeof publicRoutes>[0]),
  ...openApiRoutes(),
];

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
