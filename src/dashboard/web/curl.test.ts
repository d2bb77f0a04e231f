// Command lines that a shell takes as they are, whatever names stand in them.

import { expect, test } from "bun:test";
import { curlOf } from "./curl.ts";

const BASE = "http://127.0.0.1:8080/";

test("GET", () => {
  expect(curlOf({ method: "GET", path: "admin/health" }, BASE, false)).toBe("curl http://127.0.0.1:8080/admin/health");
});

test("a query is quoted, credentials come from the environment", () => {
  expect(curlOf({ method: "GET", path: "admin/requests?status=5xx&limit=5" }, BASE, true)).toBe(
    `curl -H "$AUTH" 'http://127.0.0.1:8080/admin/requests?status=5xx&limit=5'`,
  );
});

test("a body makes it a POST; other methods are named", () => {
  const put = curlOf({ method: "PUT", path: "admin/backends/a", body: { enabled: false } }, BASE, false);
  expect(put).toContain("-X PUT");
  expect(put).toContain(`-d '{"enabled":false}'`);
  expect(curlOf({ method: "POST", path: "admin/session", body: {} }, BASE, false)).not.toContain("-X");
  expect(curlOf({ method: "POST", path: "admin/config/prompts/reload" }, BASE, false)).toContain("-X POST");
});

test("a proxy's own path stays before it", () => {
  expect(curlOf({ method: "GET", path: "admin/health" }, "https://example.org/gate/", false)).toBe(
    "curl https://example.org/gate/admin/health",
  );
});

test("a shell reads back what was meant, whatever it is", async () => {
  const hostile = `it's "$HOME" \`id\` $(id) \\ ; & | \n <b> é`;
  const command = curlOf({ method: "POST", path: "admin/x", body: { name: hostile } }, BASE, true);
  const words = Bun.spawn(["sh", "-c", `curl() { for word; do printf '%s\\0' "$word"; done; }; ${command}`], {
    env: { AUTH: "Authorization: Bearer t" },
  });
  const told = (await new Response(words.stdout).text()).split("\0");
  expect(told).toContain("Authorization: Bearer t");
  expect(told).toContain(JSON.stringify({ name: hostile }));
});
