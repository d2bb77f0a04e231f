// Who gets to the admin API of a running gateway: every path of it, each method of authentication.

import { describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import { ADMIN_ENDPOINTS } from "../support/endpoints.ts";
import { expectError } from "../support/expect-error.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

const TOKEN = "sekret-token";
const KEYS = [
  { id: "boss", key: "sekret-admin-key", scopes: ["admin" as const] },
  { id: "user", key: "sekret-user-key" },
];
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
const basic = (text: string) => ({ Authorization: `Basic ${Buffer.from(text).toString("base64")}` });

function start(auth: NonNullable<ConfigDocument["admin"]>["auth"], more: ConfigDocument = {}) {
  const backends = [{ name: "a", type: "demo", models: ["m"] }];
  return bed.gateway({ config: { backends, ...more, admin: { auth } }, awaitHealth: false });
}

test.each([
  ["PATCH", "/admin/backends/a", "GET, HEAD, PUT, DELETE"],
  ["PATCH", "/admin/backends/a/weight", "PUT"],
  ["GET", "/admin/backends/a/models", "PUT"],
  ["POST", "/admin/keys/boss", "GET, HEAD, PUT, DELETE"],
  ["PATCH", "/admin/keys/boss", "GET, HEAD, PUT, DELETE"],
  ["DELETE", "/admin/keys/boss/rotate", "POST"],
])("%s %s tells what the path takes", async (method, path, allow) => {
  const gateway = await start({ method: "bearer_token", token: TOKEN });
  const response = await gateway.fetch(path, { method, headers: bearer(TOKEN) });
  expect(response.headers.get("allow")).toBe(allow);
  await expectError(response, 405);
});

test("every admin path wants credentials, and so does every described one", async () => {
  const gateway = await start({ method: "bearer_token", token: TOKEN, max_failed_attempts: 1_000 });
  const asked = ADMIN_ENDPOINTS.map(({ method, path }) => ({
    method: method as string,
    path: path.replace(/\{\w+\.\.\.\}/, "x/y").replace(/\{\w+\}/, "x"),
  }));
  const { paths } = (await (await gateway.fetch("/openapi.json")).json()) as { paths: Record<string, object> };
  for (const [path, operations] of Object.entries(paths)) {
    if (!path.startsWith("/admin")) continue;
    for (const method of Object.keys(operations)) {
      asked.push({ method: method.toUpperCase(), path: path.replaceAll(/\{[^}]+\}/g, "x") });
    }
  }
  expect(asked.length).toBeGreaterThan(40);
  for (const { method, path } of asked) {
    for (const headers of [{}, bearer("wrong"), { "X-API-Key": TOKEN }, basic(`admin:${TOKEN}`)] as const) {
      const response = await gateway.fetch(path, { method, headers: { ...headers } });
      // What is described may not be served; then nothing is there for anyone.
      const nothing = path.startsWith("/admin/oidc/") ? "There is no OpenID provider" : "There is nothing at";
      if (response.status === 404) expect((await expectError(response, 404)).message).toContain(nothing);
      else expect(await expectError(response, 401)).toMatchObject({ type: "authentication_error" });
    }
  }
});

describe("methods", () => {
  test("bearer_token", async () => {
    const gateway = await start({ method: "bearer", token: TOKEN });
    const missing = await gateway.fetch("/admin/config");
    await expectError(missing, 401);
    expect(missing.headers.get("www-authenticate")).toContain("Bearer");
    const admin = new AdminClient(gateway, bearer(TOKEN));
    expect((await admin.get("/admin/config/admin")).config).toMatchObject({ auth: { token: "********" } });
    const shown = await admin.get("/admin/config/admin?include_sensitive=true", { showsSecrets: true });
    expect(shown.config).toMatchObject({ auth: { token: TOKEN } });
    // Other endpoints are not concerned.
    expect((await gateway.fetch("/health")).status).toBe(200);
    expect((await gateway.chat()).status).toBe(200);
  });

  test("basic, and the history says who it was", async () => {
    const gateway = await start({ method: "basic", username: "ann", password: "sekret-word" });
    const missing = await gateway.fetch("/admin/backends");
    await expectError(missing, 401);
    expect(missing.headers.get("www-authenticate")).toContain("Basic");
    await expectError(await gateway.fetch("/admin/backends", { headers: basic("ann:wrong") }), 401);
    const admin = new AdminClient(gateway, basic("ann:sekret-word"));
    await admin.ok("PATCH", "/admin/config/retry", { max_attempts: 4 });
    expect((await admin.get("/admin/config/history")).history).toMatchObject([
      { version: 2, user: "ann", source: "api" },
      {},
    ]);
  });

  test("api_key: 401 for an unknown key, 403 for one without the scope admin", async () => {
    const gateway = await start({ method: "api_key" }, { api_keys: { keys: KEYS } });
    const ask = (key: string) => gateway.fetch("/admin/config", { headers: { "X-API-Key": key } });
    await expectError(await ask("sekret-unknown-key"), 401);
    expect(await expectError(await ask("sekret-user-key"), 403)).toMatchObject({ code: "insufficient_scope" });
    expect((await ask("sekret-admin-key")).status).toBe(200);
    const admin = new AdminClient(gateway, { "X-API-Key": "sekret-admin-key" });
    await admin.ok("PATCH", "/admin/config/retry", { max_attempts: 4 });
    expect((await admin.get("/admin/config/history?limit=1")).history).toMatchObject([{ user: "boss" }]);
    const { content } = await admin.ok(
      "POST",
      "/admin/config/export",
      { include_sensitive: true },
      { showsSecrets: true },
    );
    expect(content).toContain("sekret-user-key");
  });

  test("ip_whitelist: right credentials from another address are 403, wrong ones 401", async () => {
    const auth = { method: "bearer_token" as const, token: TOKEN, ip_whitelist: ["10.0.0.0/8"] };
    const gateway = await start(auth, { server: { trusted_proxies: ["127.0.0.1"] } });
    const ask = (headers: Record<string, string>) => gateway.fetch("/admin/config", { headers });
    await expectError(await ask(bearer(TOKEN)), 403);
    await expectError(await ask(bearer("wrong")), 401);
    const from = (address: string) => ({ ...bearer(TOKEN), "X-Forwarded-For": address });
    expect((await ask(from("10.1.2.3"))).status).toBe(200);
    await expectError(await ask(from("192.0.2.1")), 403);
    await expectError(await ask(from("10.1.2.3, 192.0.2.1")), 403);
  });

  test("a page of another origin, and a name that leads here, are 403", async () => {
    const gateway = await start({});
    const ask = (headers: Record<string, string>) => gateway.fetch("/admin/config", { headers });
    await expectError(await ask({ Origin: "https://evil.example" }), 403);
    await expectError(await ask({ "X-Forwarded-For": "192.0.2.1" }), 403);
    await expectError(await ask({ Host: "evil.example" }), 403);
    expect((await ask({ Origin: gateway.url })).status).toBe(200);
  });
});

test("too many guesses: wrong tokens are 429 with the time to wait, the right one always passes", async () => {
  const gateway = await start({ method: "bearer_token", token: TOKEN, max_failed_attempts: 3 });
  const ask = (token: string) => gateway.fetch("/admin/config", { headers: bearer(token) });
  for (let count = 0; count < 3; count++) await expectError(await ask("wrong"), 401);
  const refused = await ask("wrong");
  expect(await expectError(refused, 429)).toMatchObject({
    type: "rate_limit_exceeded",
    details: { limit: 3, window: "60s", retry_after: 1, reset_at: expect.any(String) },
  });
  expect(refused.headers.get("retry-after")).toBe("1");
  expect((await ask(TOKEN)).status).toBe(200);
});

test("basic: whoever guesses a password waits, and then the right one passes", async () => {
  const gateway = await start({
    method: "basic",
    username: "ann",
    password: "sekret-password",
    max_failed_attempts: 3,
  });
  const ask = (text: string) =>
    gateway.fetch("/admin/config", { headers: { Authorization: `Basic ${Buffer.from(text).toString("base64")}` } });
  for (let count = 0; count < 3; count++) await expectError(await ask("ann:wrong"), 401);
  await expectError(await ask("ann:sekret-password"), 429);
  await waitFor("the password passes", async () => (await ask("ann:sekret-password")).status === 200);
});

test("authentication can be switched on in the file, and changed with credentials, while running", async () => {
  const gateway = await start({});
  const open = new AdminClient(gateway);
  await open.refused(400, "PATCH", "/admin/config/admin", { auth: { method: "bearer_token", token: TOKEN } });
  gateway.writeConfig({ admin: { auth: { method: "bearer_token", token: TOKEN } } });
  await waitFor("credentials are wanted", async () => (await gateway.fetch("/admin/config")).status === 401);
  const admin = new AdminClient(gateway, bearer(TOKEN));
  await admin.ok("PATCH", "/admin/config/admin", { auth: { token: "sekret-second" } });
  await admin.refused(401, "GET", "/admin/config");
  expect(await new AdminClient(gateway, bearer("sekret-second")).version()).toBe(3);
});
