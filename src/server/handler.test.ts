// The frame of a request as its log sees it; the rest is tested from outside.

import { expect, test } from "bun:test";
import { serveRoutes } from "../../test/support/serve-routes.ts";
import { loggerTo } from "../logging/logger.ts";

test("a bug is told once, as an error, with all that an access line has", async () => {
  const lines: Record<string, unknown>[] = [];
  const log = loggerTo({ write: (line) => void lines.push(JSON.parse(line)) });
  const broken = () => {
    throw new TypeError("x is not a function");
  };
  const served = await serveRoutes([{ method: "GET", path: "/broken", access: "open", handle: broken }], log);
  const response = await served.fetch("/broken", { headers: { "X-Request-ID": "r1" } });
  expect(response.status).toBe(500);
  expect(await response.text()).not.toContain("not a function");
  await served.stop();
  expect(lines).toMatchObject([
    {
      level: "error",
      msg: "unexpected error",
      method: "GET",
      path: "/broken",
      status: 500,
      client: "127.0.0.1",
      request_id: "r1",
      id: response.headers.get("x-signalbox-request-id"),
      err: { type: "TypeError", message: "x is not a function", stack: expect.any(String) },
    },
  ]);
});
