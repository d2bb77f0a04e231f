// Roles of administrators: what each may do at every operation of the document, and the credentials that give them.

import { beforeAll, describe, expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { type OpenApiOperation, operationsOf, samplePath } from "../support/openapi.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();
const ROLES = ["viewer", "operator", "admin"] as const;
type Role = (typeof ROLES)[number];

const TOKENS = {
  viewer: { name: "grafana", token: "sekret-viewer-token", role: "viewer" },
  operator: { name: "on-call", token: "sekret-operator-token", role: "operator" },
  admin: { name: "deploy", token: "sekret-admin-token", role: "admin" },
} as const;

const CONFIG = {
  backends: [{ name: "a", type: "demo" as const, models: ["m"] }],
  api_keys: {
    keys: [
      { id: "boss", key: "sekret-key-of-boss", scopes: ["admin" as const] },
      { id: "user", key: "sekret-key-of-user" },
    ],
  },
};

const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
const basic = (text: string) => ({ Authorization: `Basic ${Buffer.from(text).toString("base64")}` });

let gateway: Gateway;
let as: Record<Role, AdminClient>;
let operations: OpenApiOperation[];

beforeAll(async () => {
  gateway = await bed.gateway({
    config: { ...CONFIG, admin: { auth: { method: "bearer_token", tokens: Object.values(TOKENS) } } },
    awaitHealth: false,
  });
  as = Object.fromEntries(
    ROLES.map((role) => [role, new AdminClient(gateway, bearer(TOKENS[role].token))]),
  ) as typeof as;
  const document = (await (await gateway.fetch("/openapi.json")).json()) as object;
  operations = operationsOf(document).filter(({ path }) => path.startsWith("/admin/"));
});

describe("every operation of the document", () => {
  test("names its role, but for those of browsers that have not signed in", () => {
    const open = operations.filter((operation) => operation["x-required-role"] === undefined);
    expect(open.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "POST /admin/session",
      "GET /admin/oidc/sign-in",
      "GET /admin/oidc/callback",
    ]);
  });

  test("refuses lower roles with both roles named, and no other", async () => {
    for (const operation of operations) {
      const { method, path, "x-required-role": needed } = operation;
      if (needed === undefined) continue;
      for (const role of ROLES) {
        // A parameter that no operation has: behind the door nothing is done.
        const { status, body } = await as[role].send(method, `${samplePath(path)}?bogus=1`);
        const told = { method, path, role, status, error: body.error };
        if (ROLES.indexOf(role) >= ROLES.indexOf(needed as Role)) {
          expect(told).toMatchObject({ status: 400, error: { param: "bogus" } });
        } else {
          expect(told).toMatchObject({
            status: 403,
            error: {
              type: "permission_error",
              code: "insufficient_role",
              message: `This needs the role ${needed}; ${TOKENS[role].name} has the role ${role}.`,
              details: { needed_role: needed, role },
            },
          });
        }
      }
    }
  });

  test("reads are for viewers, and every change needs more", () => {
    for (const { method, path, "x-required-role": needed } of operations) {
      if (needed === undefined) continue;
      // What people have said is not for viewers.
      const isSaid = /^\/admin\/(recordings|replays|datasets|feedback)(\/|$)/.test(path);
      const isRead = (method === "GET" && !isSaid) || path === "/admin/config/export" || path === "/admin/session";
      expect({ method, path, forViewers: needed === "viewer" }).toEqual({ method, path, forViewers: isRead });
    }
  });
});

describe("roles", () => {
  test("a viewer and an operator see no secret", async () => {
    for (const role of ["viewer", "operator"] as const) {
      await as[role].get("/admin/config/full");
      await as[role].get("/admin/keys");
      for (const path of ["/admin/config/full", "/admin/config/admin"]) {
        const { code } = await as[role].refused(403, "GET", `${path}?include_sensitive=true`);
        expect(code).toBe("insufficient_role");
      }
      const { code } = await as[role].refused(403, "POST", "/admin/config/export", { include_sensitive: true });
      expect(code).toBe("insufficient_role");
    }
    const { text } = await as.admin.send("GET", "/admin/config/full?include_sensitive=true", { showsSecrets: true });
    expect(text).toContain("sekret-key-of-boss");
  });

  test("an operator drains and weighs a backend, and changes nothing else of it", async () => {
    await as.operator.ok("PUT", "/admin/backends/a", { enabled: false });
    await as.operator.ok("PUT", "/admin/backends/a", { enabled: true, weight: 3 });
    await as.operator.ok("PUT", "/admin/backends/a/weight", { weight: 2 });
    await as.operator.refused(403, "PUT", "/admin/backends/a", { url: "http://127.0.0.1:9" });
    await as.operator.refused(403, "PUT", "/admin/backends/a", { enabled: true, models: ["x"] });
    await as.admin.ok("PUT", "/admin/backends/a", { models: ["m", "n"] });
  });

  test("an operator makes and rotates keys, but none that is an administrator", async () => {
    await as.operator.ok("POST", "/admin/keys", { id: "made", key: "sekret-made-by-operator" });
    await as.operator.ok("POST", "/admin/keys/made/rotate", { key: "sekret-made-by-operator-2" });
    await as.operator.refused(400, "POST", "/admin/keys", { id: "own", scopes: ["admin"] });
    await as.operator.refused(400, "PUT", "/admin/keys/made", { scopes: ["admin"] });
    await as.operator.refused(400, "POST", "/admin/keys/boss/rotate", { key: "sekret-of-operator" });
    await as.admin.ok("POST", "/admin/keys", { id: "second", key: "sekret-second-boss", scopes: ["admin"] });
  });

  test("an operator takes no key away from an administrator", async () => {
    await as.admin.ok("POST", "/admin/keys", { id: "third", key: "sekret-third-boss", scopes: ["admin"] });
    for (const id of ["boss", "third"]) {
      await as.operator.refused(403, "PUT", `/admin/keys/${id}`, { scopes: ["read"] });
      await as.operator.refused(403, "DELETE", `/admin/keys/${id}`);
    }
    await as.admin.ok("PUT", "/admin/keys/third", { scopes: ["read"] });
    await as.operator.ok("DELETE", "/admin/keys/third");
  });

  test("the history names who made a change", async () => {
    await as.operator.ok("PUT", "/admin/backends/a/weight", { weight: 7 });
    const { history } = await as.viewer.get("/admin/config/history");
    expect((history as { user: string }[])[0]?.user).toBe("on-call");
  });

  test("the audit names a person whose role was too low", async () => {
    await as.viewer.refused(403, "POST", "/admin/stats/reset");
    const { entries } = await as.admin.get("/admin/audit?outcome=refused");
    // Five refusals of an address are written in a minute; the first ones are those of the walk above.
    expect(entries).toContainEqual(expect.objectContaining({ name: "grafana", status: 403, outcome: "refused" }));
  });

  test("GET /admin/session tells the role, and what it may not do", async () => {
    for (const role of ROLES) {
      const session = await as[role].get("/admin/session");
      expect(session).toMatchObject({ name: TOKENS[role].name, role, elevated: role === "admin" });
      const above = operations.filter(({ "x-required-role": needed }) => {
        return needed !== undefined && ROLES.indexOf(needed as Role) > ROLES.indexOf(role);
      });
      const names = [...new Set(above.map(({ method, path }) => `${method} ${path}`))];
      const told = (session.needs_higher_role as string[]).map((operation) => operation.replace("...}", "}"));
      // Of an operation with variants the document has one for each.
      for (const name of told.filter((each) => !each.includes("{section}"))) expect(names).toContain(name);
      expect(told.length > 0).toBe(role !== "admin");
    }
  });
});

describe("credentials", () => {
  test("users of basic, beside the one without a role", async () => {
    const from = await bed.gateway({
      config: {
        ...CONFIG,
        admin: {
          auth: {
            method: "basic",
            username: "root",
            password: "sekret-of-root",
            users: [{ username: "vera", password: "sekret-of-vera", role: "viewer" }],
          },
        },
      },
      awaitHealth: false,
    });
    const vera = new AdminClient(from, basic("vera:sekret-of-vera"));
    expect(await vera.get("/admin/session")).toMatchObject({ name: "vera", role: "viewer" });
    expect(await new AdminClient(from, basic("root:sekret-of-root")).get("/admin/session")).toMatchObject({
      name: "root",
      role: "admin",
    });
    await vera.refused(403, "POST", "/admin/stats/reset");
    await expectError(await from.fetch("/admin/session", { headers: basic("vera:sekret-of-root") }), 401);
  });

  test("keys with the scope admin and a role", async () => {
    const keys = [
      ...CONFIG.api_keys.keys,
      { id: "watch", key: "sekret-key-of-watch", scopes: ["admin" as const], admin_role: "viewer" as const },
    ];
    const from = await bed.gateway({
      config: { ...CONFIG, api_keys: { keys }, admin: { auth: { method: "api_key" } } },
      awaitHealth: false,
    });
    const session = (key: string) => new AdminClient(from, { "X-API-Key": key }).get("/admin/session");
    expect(await session("sekret-key-of-boss")).toMatchObject({ name: "boss", role: "admin" });
    expect(await session("sekret-key-of-watch")).toMatchObject({ name: "watch", role: "viewer" });
    const { key } = (await new AdminClient(from, { "X-API-Key": "sekret-key-of-boss" }).ok("PUT", "/admin/keys/watch", {
      admin_role: "operator",
    })) as { key: { admin_role: string } };
    expect(key.admin_role).toBe("operator");
    expect(await session("sekret-key-of-watch")).toMatchObject({ role: "operator" });
  });

  test("a token that is removed ends its sign-in, the others go on; a lower role holds at once", async () => {
    const auth = { method: "bearer_token" as const, tokens: Object.values(TOKENS) };
    const from = await bed.gateway({ config: { ...CONFIG, admin: { auth } }, awaitHealth: false });
    const cookieOf = async (token: string) => {
      const response = await from.fetch("/admin/session", { method: "POST", body: JSON.stringify({ token }) });
      return (response.headers.getSetCookie()[0] as string).split(";")[0] as string;
    };
    const [viewer, operator] = [await cookieOf(TOKENS.viewer.token), await cookieOf(TOKENS.operator.token)];
    const session = (cookie: string) => from.fetch("/admin/session", { headers: { Cookie: cookie } });
    const admin = new AdminClient(from, bearer(TOKENS.admin.token));
    const set = (tokens: object[]) => admin.ok("PATCH", "/admin/config/admin", { auth: { tokens } });
    await set([{ ...TOKENS.operator, role: "viewer" }, TOKENS.admin]);
    expect((await session(viewer)).status).toBe(401);
    expect(await (await session(operator)).json()).toMatchObject({ name: "on-call", role: "viewer" });
    const { config } = (await admin.get("/admin/config/admin")) as { config: { auth: { tokens: object[] } } };
    expect(config.auth.tokens.length).toBe(2);
  });

  test("mistakes are named", async () => {
    const { token } = TOKENS.viewer;
    const problems = async (auth: object) => {
      const { errors } = (await as.admin.ok("POST", "/admin/config/validate", {
        section: "admin",
        config: { auth },
      })) as { errors: { field: string }[] };
      return errors.map((error) => Object.values(error).join(" "));
    };
    const named = { name: "x", token, role: "viewer" };
    const cases: [auth: object, told: RegExp][] = [
      [{ method: "bearer_token" }, /admin\.auth\.token.*is required by method bearer_token, or tokens/],
      [{ method: "basic" }, /admin\.auth\.username.*is required by method basic/],
      [{ method: "oidc" }, /admin\.auth\.oidc.*is required by method oidc/],
      [{ method: "bearer_token", tokens: [{ ...named, role: "root" }] }, /tokens.*role/],
      [{ method: "bearer_token", tokens: [named, { ...named, token: "sekret-another" }] }, /"x" is already the name/],
      [{ method: "bearer_token", token, tokens: [named] }, /is the same token as admin\.auth\.token/],
      [
        {
          ...{ method: "basic", username: "a", password: "sekret-1" },
          users: [{ username: "a", password: "sekret-2", role: "viewer" }],
        },
        /"a" is already admin\.auth\.username/,
      ],
      [
        { method: "oidc", oidc: { issuer: "https://id.example", client_id: "x", client_secret: "sekret-3" } },
        /roles.*must name a value/,
      ],
      [
        { method: "oidc", oidc: { issuer: "id.example", client_id: "x", client_secret: "sekret-3", scopes: ["a"] } },
        /issuer.*expected a URL.*scopes.*must hold openid/s,
      ],
    ];
    for (const [auth, told] of cases) expect((await problems(auth)).join("\n")).toMatch(told);
  });
});
