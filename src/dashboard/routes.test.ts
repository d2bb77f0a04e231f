// The paths of the dashboard, who may ask for them, and in which encoding files come.

import { describe, expect, test } from "bun:test";
import { DASHBOARD_PATHS } from "./paths.ts";
import { dashboardRoutes, encodingFor } from "./routes.ts";

const endpoints = dashboardRoutes({ settings: () => ({ admin: { auth: { method: "none" } } }), env: {} } as never);

test("every path that the server knows leads to an endpoint, for those who may sign in; that of keys is open", () => {
  expect(endpoints.map(({ path }) => path)).toEqual([...DASHBOARD_PATHS]);
  const open = endpoints.filter(({ access, isForGuests }) => access !== "admin" || !isForGuests);
  expect(open.map(({ path, access }) => [path, access])).toEqual([["/dashboard/me", "open"]]);
});

describe("encoding", () => {
  test.each([
    ["gzip, deflate, br, zstd", "br"],
    ["gzip, deflate", "gzip"],
    ["br;q=0, gzip;q=0.5", "gzip"],
    ["br;q=0.000", "plain"],
    ["GZIP", "gzip"],
    ["", "plain"],
    ["identity", "plain"],
  ] as const)("for '%s'", (accepted, encoding) => expect(encodingFor(accepted)).toBe(encoding));
});
