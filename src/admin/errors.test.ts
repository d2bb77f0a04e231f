import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { AdminClient } from "../../test/support/admin-client.ts";
import { type ServedRoutes, serveRoutes, settingsOf } from "../../test/support/serve-routes.ts";
import { systemClock } from "../lib/clock.ts";
import { createRequestSearch } from "../request-log/search.ts";
import { ErrorRecorder } from "../stats/error-recorder.ts";
import { Stories } from "../stats/stories.ts";
import { errorRoutes } from "./errors.ts";

const errors = new ErrorRecorder({ clock: systemClock });
const settings = settingsOf({ backends: [{ name: "a", type: "vllm", url: "http://127.0.0.1:9" }] });
const stories = new Stories({ clock: systemClock });
const search = createRequestSearch({ stories, log: undefined, clock: systemClock });
let ids = 0;

let served: ServedRoutes;
let admin: AdminClient;
beforeAll(async () => {
  served = await serveRoutes(
    errorRoutes({ search, clock: systemClock, errors, settings: () => settings, newId: () => `test-${++ids}` }),
  );
  admin = new AdminClient(served);
});
afterAll(() => served.stop());

describe("errors", () => {
  test("begin empty", async () => {
    expect(await admin.get("/admin/errors/recent")).toEqual({ errors: [], total: 0 });
    expect(await admin.get("/admin/errors/stats")).toEqual({
      total: 0,
      by_type: {},
      by_status: {},
      by_backend: {},
      window: "all",
    });
  });

  test("a test error is recorded like any other, and found in every way", async () => {
    const debug = await admin.ok("POST", "/admin/debug/error", { type: "timeout", backend: "a" });
    expect(debug).toMatchObject({
      success: true,
      message: expect.stringContaining("'a'"),
      error: { request_id: "test-1", status: 504, type: "backend_timeout", backend: "a" },
    });
    await admin.ok("POST", "/admin/debug/error", { type: "status_503", backend: "a" });
    expect(await admin.get("/admin/errors/test-1")).toEqual(debug.error as Record<string, unknown>);
    expect(await admin.get("/admin/errors/recent")).toMatchObject({
      errors: [{ request_id: "test-2" }, { request_id: "test-1" }],
      total: 2,
    });
    expect(await admin.get("/admin/errors/recent?limit=1&type=backend_timeout&backend=a")).toMatchObject({
      errors: [{ request_id: "test-1" }],
      total: 1,
    });
    expect(await admin.get("/admin/errors/recent?backend=b")).toEqual({ errors: [], total: 0 });
    expect(await admin.get("/admin/errors/stats?window=1h")).toEqual({
      total: 2,
      by_type: { backend_timeout: 1, backend_error: 1 },
      by_status: { "503": 1, "504": 1 },
      by_backend: { a: 2 },
      window: "1h",
    });
  });

  test.each([
    ["limit", "/admin/errors/recent?limit=0"],
    ["limit", "/admin/errors/recent?limit=-5"],
    ["limit", "/admin/errors/recent?limit=many"],
    ["window", "/admin/errors/stats?window=2h"],
  ])("400 names '%s': %s", async (param, path) => {
    expect((await admin.refused(400, "GET", path)).param).toBe(param);
  });

  test("404 for a request without an error", async () => {
    await admin.refused(404, "GET", "/admin/errors/none");
    await admin.refused(400, "GET", "/admin/errors/a%2F..%2Fb");
  });
});

describe("POST /admin/debug/error", () => {
  test.each([
    ["type", 400, {}],
    ["type", 400, { type: "sekret", backend: "a" }],
    ["type", 400, { type: 5, backend: "a" }],
    ["type", 400, { type: "status_200", backend: "a" }],
    ["type", 400, { type: "__proto__", backend: "a" }],
    ["backend", 400, { type: "timeout" }],
    ["backend", 400, { type: "timeout", backend: null }],
    ["backend", 400, { type: "timeout", backend: ["a"] }],
    ["backend", 404, { type: "timeout", backend: "b" }],
    ["typ", 400, { typ: "timeout", backend: "a" }],
  ])("'%s' is named with %i: %j", async (param, status, body) => {
    const { total } = await admin.get("/admin/errors/stats");
    expect((await admin.refused(status, "POST", "/admin/debug/error", body)).param).toBe(param);
    expect(await admin.get("/admin/errors/stats")).toMatchObject({ total });
  });

  test.each(["[]", "7", '"x"', "{", '{"type":"timeout","type":"timeout","backend":"a"}', `${"[".repeat(10_000)}`])(
    "400 for the body %s",
    async (body) => {
      await admin.refused(400, "POST", "/admin/debug/error", body);
    },
  );
});
