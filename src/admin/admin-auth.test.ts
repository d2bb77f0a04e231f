// The admin door: methods, addresses, proxies, web pages, and guesses.

import { describe, expect, test } from "bun:test";
import { createKeyIdentity } from "../access/key-identity.ts";
import { NO_STORED_KEYS } from "../access/stored-keys.ts";
import { type ConfigDocument, documentSchema, type Settings } from "../config/sections/registry.ts";
import type { Role } from "../config/values/roles.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Administrator } from "../server/endpoint.ts";
import { createAdminDoor } from "./admin-auth.ts";

/** Stands for a peer on a unix socket, which has no address. */
const UNIX = "unix";
const TOKEN = "sekret-token";

function setUp(document: ConfigDocument) {
  const time = { ms: 0 };
  const state = { settings: documentSchema.parse(document) as Settings, time, warnings: 0 };
  const door = createAdminDoor({
    settings: () => state.settings,
    identify: createKeyIdentity(() => "salt"),
    storedKeys: NO_STORED_KEYS,
    clock: { now: () => time.ms, wallTime: () => time.ms },
    log: { warn: () => void state.warnings++ },
  });
  /** Who is let in, or the status of the refusal. */
  function ask(
    headers: Record<string, string> = {},
    address = "127.0.0.1",
    peerAddress = address,
    needed: Role = "viewer",
  ) {
    const [client, peer] = [address, peerAddress].map((text) => (text === UNIX ? undefined : text));
    const request = new Request("http://localhost:8080/admin/config", {
      headers: { Host: "localhost:8080", ...headers },
    });
    const visitor: Parameters<typeof door.admit>[0] = { request, administrator: undefined };
    try {
      door.admit(visitor, { peer, client }, needed);
      return visitor.administrator as Administrator;
    } catch (error) {
      if (error instanceof GatewayError) return error;
      throw error;
    }
  }
  const status = (...asked: Parameters<typeof ask>) => {
    const result = ask(...asked);
    return result instanceof GatewayError ? result.status : 200;
  };
  return { ...state, state, ask, status };
}

const withAuth = (auth: NonNullable<ConfigDocument["admin"]>["auth"], more: ConfigDocument = {}) =>
  setUp({ ...more, admin: { auth } });
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
const basic = (text: string) => ({ Authorization: `Basic ${Buffer.from(text).toString("base64")}` });

describe("method none", () => {
  const { ask, status } = setUp({});

  test("answers this machine as an admin who may not see secrets", () => {
    for (const address of ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"]) {
      expect(ask({}, address)).toMatchObject({ name: undefined, role: "admin", method: "none" });
    }
    expect(ask({ Host: "anything" }, UNIX)).toMatchObject({ name: undefined, role: "admin", method: "none" });
  });

  test("nobody else, whatever they send", () => {
    expect(status({}, "192.0.2.1")).toBe(403);
    expect(status({ "X-Forwarded-For": "127.0.0.1", Host: "localhost" }, "127.0.0.1", "192.0.2.1")).toBe(403);
    expect(status(bearer(TOKEN), "2001:db8::1")).toBe(403);
  });

  test("not what a proxy on this machine hands on", () => {
    expect(status({ "X-Forwarded-For": "192.0.2.1" })).toBe(403);
    expect(status({ "X-Forwarded-For": "192.0.2.1" }, "192.0.2.1", "127.0.0.1")).toBe(403);
    expect(status({ Forwarded: "for=192.0.2.1" })).toBe(403);
    expect(status({ "X-Real-IP": "192.0.2.1" })).toBe(403);
    expect(status({ "X-Forwarded-Proto": "https" })).toBe(403);
    expect(status({ Via: "1.1 proxy" })).toBe(403);
  });

  test("not a name that leads here (DNS rebinding), and no page of another origin", () => {
    for (const host of ["localhost", "localhost:8080", "127.0.0.1:80", "[::1]:80", "app.localhost"]) {
      expect([host, status({ Host: host })]).toEqual([host, 200]);
    }
    for (const host of ["", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "192.0.2.1"]) {
      expect([host, status({ Host: host })]).toEqual([host, 403]);
    }
    expect(status({ Host: "localhost:8080", Origin: "http://localhost:8080" })).toBe(200);
    for (const origin of ["http://evil.example", "null", "http://localhost:9000"]) {
      expect([origin, status({ Host: "localhost:8080", Origin: origin })]).toEqual([origin, 403]);
    }
  });

  test("ip_whitelist narrows it further, and never widens it", () => {
    const narrowed = withAuth({ ip_whitelist: ["10.0.0.0/8"] });
    expect(narrowed.status({}, "127.0.0.1")).toBe(403);
    expect(narrowed.status({}, "10.0.0.1")).toBe(403);
  });
});

describe("credentials", () => {
  const keys = [
    { id: "boss", key: "sekret-admin-key", scopes: ["admin" as const] },
    { id: "user", key: "sekret-user-key" },
    { id: "gone", key: "sekret-gone-key", scopes: ["admin" as const], enabled: false },
  ];
  const settings = { api_keys: { keys } };

  test("bearer_token, also spelled bearer", () => {
    for (const method of ["bearer_token", "bearer"] as const) {
      const { ask, status } = withAuth({ method, token: TOKEN });
      expect(ask(bearer(TOKEN), "192.0.2.1")).toMatchObject({ name: "admin token", role: "admin" });
      expect(status({ Authorization: `bEARER   ${TOKEN} ` })).toBe(200);
      expect(status({ "X-API-Key": TOKEN })).toBe(401);
      expect(status(basic(`u:${TOKEN}`))).toBe(401);
      for (const wrong of ["", TOKEN.slice(0, -1), `${TOKEN}x`, TOKEN.toUpperCase()]) {
        expect(status(bearer(wrong))).toBe(401);
      }
      const missing = ask({});
      expect((missing as GatewayError).headers?.["WWW-Authenticate"]).toStartWith("Bearer");
    }
  });

  test("basic", () => {
    const { ask, status } = withAuth({ method: "basic", username: "ann", password: "sekret:ü" });
    expect(ask(basic("ann:sekret:ü"))).toMatchObject({ name: "ann", role: "admin" });
    for (const wrong of ["ann:", "ann", ":sekret:ü", "bob:sekret:ü", "ann:sekret", ""]) {
      expect([wrong, status(basic(wrong))]).toEqual([wrong, 401]);
    }
    expect(status({ Authorization: "Basic !!!" })).toBe(401);
    expect((ask({}) as GatewayError).headers?.["WWW-Authenticate"]).toStartWith("Basic realm=");
  });

  test("api_key: a key with the scope admin, or the token", () => {
    const { ask, status } = withAuth({ method: "api_key", token: TOKEN }, settings);
    expect(ask({ "X-API-Key": "sekret-admin-key" })).toMatchObject({ name: "boss", role: "admin" });
    expect(ask({ "X-API-Key": TOKEN })).toMatchObject({ role: "admin" });
    expect(status({ "X-API-Key": "sekret-user-key" })).toBe(403);
    expect(status({ "X-API-Key": "sekret-gone-key" })).toBe(401);
    expect(status({ "X-API-Key": "sekret-unknown" })).toBe(401);
    expect(status({})).toBe(401);
    expect(status(bearer("sekret-admin-key"))).toBe(401);
  });

  test("a method without its credentials lets nobody in", () => {
    expect(withAuth({ method: "bearer_token" }).status(bearer("undefined"))).toBe(401);
    expect(withAuth({ method: "basic" }).status(basic("undefined:undefined"))).toBe(401);
    expect(withAuth({ method: "api_key" }).status({ "X-API-Key": "" })).toBe(401);
  });

  test("right credentials from a wrong address, or by a page of another origin, are 403; wrong ones are 401", () => {
    const { status } = withAuth({ method: "bearer_token", token: TOKEN, ip_whitelist: ["10.0.0.0/8", "127.0.0.1"] });
    expect(status(bearer(TOKEN), "10.1.2.3")).toBe(200);
    expect(status(bearer(TOKEN), "192.0.2.1")).toBe(403);
    expect(status(bearer("wrong"), "192.0.2.1")).toBe(401);
    expect(status(bearer(TOKEN), UNIX)).toBe(200); // counts as 127.0.0.1
    // Behind a trusted proxy the client counts, not the proxy.
    expect(status(bearer(TOKEN), "192.0.2.1", "10.0.0.1")).toBe(403);
    expect(status({ ...bearer(TOKEN), Host: "gw", Origin: "http://evil.example" }, "10.0.0.1")).toBe(403);
    expect(status({ ...bearer(TOKEN), Host: "gw", Origin: "https://gw" }, "10.0.0.1")).toBe(200);
  });

  test("a change of the settings holds from the next request on", () => {
    const { state, status } = withAuth({ method: "bearer_token", token: TOKEN });
    state.settings = documentSchema.parse({ admin: { auth: { method: "bearer_token", token: "sekret-second" } } });
    expect(status(bearer(TOKEN))).toBe(401);
    expect(status(bearer("sekret-second"))).toBe(200);
  });
});

describe("guesses", () => {
  const limits = { max_failed_attempts: 3, failed_attempts_window: "10s" } as const;
  const start = () => withAuth({ method: "bearer_token", token: TOKEN, ...limits });

  test("after too many, wrong tokens are refused with the time to wait; the right one always passes", () => {
    const { ask, status, time, state } = start();
    for (let count = 0; count < 3; count++) expect(status(bearer("wrong"), "192.0.2.1")).toBe(401);
    time.ms = 400;
    for (let count = 0; count < 100; count++) {
      expect(ask(bearer("wrong"), "192.0.2.1")).toMatchObject({
        status: 429,
        type: "rate_limit_exceeded",
        headers: { "Retry-After": "1" },
        details: { limit: 3, window: "10s", retry_after: 1, reset_at: "1970-01-01T00:00:01.000Z" },
      });
      expect(status(bearer(TOKEN), "192.0.2.1")).toBe(200);
    }
    expect(state.warnings).toBe(3);
    time.ms = 1_000;
    expect(status(bearer("wrong"), "192.0.2.1")).toBe(401);
  });

  test("a key with the scope admin always passes too, and a known key without it is no guess", () => {
    const keys = [
      { id: "boss", key: "sekret-admin-key", scopes: ["admin" as const] },
      { id: "user", key: "sekret-user-key" },
    ];
    const { status } = withAuth({ method: "api_key", ...limits }, { api_keys: { keys } });
    for (let count = 0; count < 10; count++) status({ "X-API-Key": "wrong" });
    expect(status({ "X-API-Key": "wrong" })).toBe(429);
    expect(status({ "X-API-Key": "sekret-admin-key" })).toBe(200);
    expect(status({ "X-API-Key": "sekret-user-key" })).toBe(403);
  });

  test("basic: an address waits for a user, longer with each guess but never long, and then the password passes", () => {
    const { status, ask, time } = withAuth({
      method: "basic",
      username: "ann",
      password: "sekret",
      max_failed_attempts: 3,
    });
    const guess = () => status(basic("ann:wrong"), "192.0.2.1");
    for (let count = 0; count < 3; count++) expect(guess()).toBe(401);
    for (const waitSeconds of [1, 2, 4, 8, 10, 10, 10]) {
      const refusal = ask(basic("ann:sekret"), "192.0.2.1");
      expect(refusal).toMatchObject({ status: 429, headers: { "Retry-After": String(waitSeconds) } });
      time.ms += waitSeconds * 1_000 - 1;
      // What is refused unseen does not make the wait longer.
      for (let count = 0; count < 50; count++) expect(guess()).toBe(429);
      expect(status(basic("ann:sekret"), "192.0.2.2")).toBe(200);
      time.ms += 1;
      expect(guess()).toBe(401);
    }
    time.ms += 10_000;
    expect(status(basic("ann:sekret"), "192.0.2.1")).toBe(200);
    expect(guess()).toBe(401);
    expect(guess()).toBe(429);
    time.ms += 60_000;
    for (let count = 0; count < 3; count++) expect(guess()).toBe(401);
  });

  test("basic: guesses for another user are not this user's", () => {
    const { status } = withAuth({ method: "basic", username: "ann", password: "sekret", ...limits });
    for (const user of ["bob", "anna", "", "x".repeat(8_000)]) {
      for (let count = 0; count < 3; count++) expect(status(basic(`${user}:wrong`))).toBe(401);
      expect(status(basic(`${user}:sekret`))).toBe(429);
    }
    expect(status(basic("ann:sekret"))).toBe(200);
  });

  test("requests without credentials are no guesses", () => {
    const { status } = start();
    for (let count = 0; count < 20; count++) expect(status({}, "192.0.2.1")).toBe(401);
    expect(status(bearer(TOKEN), "192.0.2.1")).toBe(200);
  });

  test("addresses of one IPv6 network count together, and many addresses take no more memory", () => {
    const { status } = start();
    for (let count = 1; count <= 3; count++) status(bearer("wrong"), `2600:1:2:3::${count}`);
    expect(status(bearer("wrong"), "2600:1:2:3:ffff::9")).toBe(429);
    for (let count = 0; count < 12_000; count++) {
      status(bearer("wrong"), `10.${count >> 16}.${(count >> 8) & 255}.${count & 255}`);
    }
    expect(status(bearer(TOKEN), "10.9.9.9")).toBe(200);
  });
});
