// Sign-ins of browsers at the admin API: what pages of others, guessers, and holders of an old cookie try.

import { describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const TOKEN = "sekret-token";
type Auth = NonNullable<ConfigDocument["admin"]>["auth"];

const METHODS: [method: string, auth: Auth, right: object, wrong: object, name: string][] = [
  ["bearer_token", { method: "bearer_token", token: TOKEN }, { token: TOKEN }, { token: "wrong" }, "admin token"],
  [
    "basic",
    { method: "basic", username: "ann", password: "sekret-password" },
    { username: "ann", password: "sekret-password" },
    { username: "ann", password: "wrong" },
    "ann",
  ],
  ["api_key", { method: "api_key" }, { key: "sekret-boss" }, { key: "sekret-nobody" }, "boss"],
];

function start(auth: Auth, more: ConfigDocument = {}): Promise<Gateway> {
  const keys = [
    { id: "boss", key: "sekret-boss", scopes: ["admin" as const] },
    { id: "user", key: "sekret-user" },
  ];
  const backends = [{ name: "a", type: "demo", models: ["m"] }];
  return bed.gateway({ config: { backends, api_keys: { keys }, ...more, admin: { auth } }, awaitHealth: false });
}

/** As the page of the dashboard asks. */
function ofPage(gateway: Gateway, cookie?: string): Record<string, string> {
  return {
    Origin: gateway.url,
    "Sec-Fetch-Site": "same-origin",
    "Sec-Fetch-Mode": "cors",
    ...(cookie !== undefined && { Cookie: cookie }),
  };
}

const signIn = (gateway: Gateway, given: object, headers: Record<string, string> = ofPage(gateway)) =>
  gateway.fetch("/admin/session", { method: "POST", body: JSON.stringify(given), headers });

async function cookieOf(gateway: Gateway, given: object): Promise<string> {
  const response = await signIn(gateway, given);
  expect(response.status).toBe(200);
  const [cookie] = response.headers.getSetCookie();
  return (cookie as string).split(";")[0] as string;
}

const bearer = { method: "bearer_token", token: TOKEN } as const;

describe.each(METHODS)("%s", (method, auth, right, wrong, name) => {
  test("a browser signs in, changes something under its name, and signs out", async () => {
    const gateway = await start(auth);
    const response = await signIn(gateway, right);
    expect(await response.json()).toEqual({
      method,
      name,
      role: "admin",
      needs_higher_role: [],
      elevated: true,
      via: "session",
      expires_at: expect.any(String),
      idle_expires_at: expect.any(String),
    });
    const [setCookie] = response.headers.getSetCookie() as [string];
    expect(setCookie).toMatch(
      /^signalbox_session_\d+=[\w-]{43}; Path=\/admin; Max-Age=43200; HttpOnly; SameSite=Strict$/,
    );
    const cookie = setCookie.split(";")[0] as string;
    const page = new AdminClient(gateway, ofPage(gateway, cookie));
    expect(await page.get("/admin/session")).toMatchObject({ method, name, via: "session" });
    await page.ok("PATCH", "/admin/config/retry", { max_attempts: 4 });
    expect((await page.get("/admin/config/history?limit=1")).history).toMatchObject([{ user: name }]);
    await page.ok("DELETE", "/admin/session");
    await page.refused(401, "GET", "/admin/session");
  });

  test("a wrong one is 401 without a window of the browser, and a guess", async () => {
    const gateway = await start({ ...auth, max_failed_attempts: 2 } as Auth);
    for (let count = 0; count < 2; count++) {
      const refused = await signIn(gateway, wrong);
      expect(refused.headers.get("www-authenticate")).toBeNull();
      expect(refused.headers.getSetCookie()).toEqual([]);
      expect(await expectError(refused, 401)).toMatchObject({ details: { method, sign_in: "POST /admin/session" } });
    }
    await expectError(await signIn(gateway, wrong), 429);
    await expectError(await signIn(gateway, {}), 401);
    if (method !== "basic") expect((await signIn(gateway, right)).status).toBe(200);
  });
});

test("programs are still challenged, and a browser that opens the address itself is", async () => {
  const gateway = await start({ method: "basic", username: "ann", password: "sekret-password" });
  const challenge = async (headers: Record<string, string>) =>
    (await gateway.fetch("/admin/config", { headers })).headers.get("www-authenticate");
  expect(await challenge({})).toContain("Basic");
  expect(await challenge({ "Sec-Fetch-Mode": "navigate" })).toContain("Basic");
  expect(await challenge({ "Sec-Fetch-Mode": "cors" })).toBeNull();
});

test("a cookie changes nothing for pages of others, at another port of this host neither", async () => {
  const gateway = await start(bearer);
  const cookie = await cookieOf(gateway, { token: TOKEN });
  const change = (headers: Record<string, string>) =>
    gateway.fetch("/admin/config/retry", {
      method: "PATCH",
      body: '{"max_attempts":5}',
      headers: { Cookie: cookie, ...headers },
    });
  const { port } = new URL(gateway.url);
  for (const headers of [
    {},
    { Origin: "null" },
    { Origin: "https://evil.example" },
    { Origin: `http://127.0.0.1:${Number(port) + 1}` },
    { Origin: `http://localhost:${port}` },
    { Origin: `http://127.0.0.1:${port}.evil.example` },
    { Origin: gateway.url, "Sec-Fetch-Site": "same-site" },
    { Origin: gateway.url, "Sec-Fetch-Site": "cross-site" },
    { Referer: `${gateway.url}/dashboard` },
  ]) {
    await expectError(await change(headers as Record<string, string>), 403);
  }
  // What a foreign page reads without saying where it is from: an image, a script, an event source.
  for (const site of ["same-site", "cross-site"]) {
    const headers = { Cookie: cookie, "Sec-Fetch-Site": site };
    for (const path of ["/admin/config", "/admin/events"])
      await expectError(await gateway.fetch(path, { headers }), 403);
  }
  expect((await gateway.fetch("/admin/config", { headers: { Cookie: cookie } })).status).toBe(200);
  expect((await change({ Origin: gateway.url })).status).toBe(200);
  expect(await new AdminClient(gateway, { Authorization: `Bearer ${TOKEN}` }).version()).toBe(2);
});

test("a page of others can sign nobody in or out", async () => {
  const gateway = await start(bearer);
  const evil = { Origin: "https://evil.example" };
  await expectError(await signIn(gateway, { token: TOKEN }, evil), 403);
  const cookie = await cookieOf(gateway, { token: TOKEN });
  const out = { method: "DELETE", headers: { ...evil, Cookie: cookie } };
  await expectError(await gateway.fetch("/admin/session", out), 403);
  expect((await gateway.fetch("/admin/session", { headers: { Cookie: cookie } })).status).toBe(200);
});

test("a cookie that was made up, changed or repeated opens nothing, and is no guess", async () => {
  const gateway = await start({ ...bearer, max_failed_attempts: 1 });
  const cookie = await cookieOf(gateway, { token: TOKEN });
  const [name, id] = cookie.split("=") as [string, string];
  const other = id.startsWith("A") ? `B${id.slice(1)}` : `A${id.slice(1)}`;
  for (const wrong of [
    `${name}=`,
    `${name}=${other}`,
    `${name}=${TOKEN}`,
    `${name}=${"A".repeat(43)}`,
    `${name}=..%2f`,
  ]) {
    for (let count = 0; count < 3; count++) {
      await expectError(await gateway.fetch("/admin/config", { headers: { Cookie: wrong } }), 401);
    }
  }
  // Behind one that somebody has pushed in, the right one counts.
  const pushed = { Cookie: `${name}=${other}; ${cookie}` };
  expect((await gateway.fetch("/admin/config", { headers: pushed })).status).toBe(200);
  // It opens the admin API only.
  expect((await signIn(gateway, { token: TOKEN })).headers.getSetCookie()[0]).toContain("Path=/admin;");
});

test("who signs in anew has a new id, and the old one is over", async () => {
  const gateway = await start(bearer);
  const first = await cookieOf(gateway, { token: TOKEN });
  const again = await signIn(gateway, { token: TOKEN }, ofPage(gateway, first));
  const second = again.headers.getSetCookie()[0]?.split(";")[0] as string;
  expect(second).not.toBe(first);
  await expectError(await gateway.fetch("/admin/session", { headers: { Cookie: first } }), 401);
  expect((await gateway.fetch("/admin/session", { headers: { Cookie: second } })).status).toBe(200);
});

test("a sign-in ends with the credentials it came by", async () => {
  const gateway = await start({ method: "api_key" });
  const admin = new AdminClient(gateway, { "X-API-Key": "sekret-boss" });
  await admin.ok("POST", "/admin/keys", { id: "guest", key: "sekret-guest", scopes: ["admin"] });
  const cookie = await cookieOf(gateway, { key: "sekret-guest" });
  const ask = async () => (await gateway.fetch("/admin/session", { headers: { Cookie: cookie } })).status;
  expect(await ask()).toBe(200);
  await admin.ok("PUT", "/admin/keys/guest", { scopes: ["read"] });
  expect(await ask()).toBe(401);
  // It does not come back either.
  await admin.ok("PUT", "/admin/keys/guest", { scopes: ["admin"] });
  expect(await ask()).toBe(401);
  expect((await signIn(gateway, { key: "sekret-user" })).status).toBe(403);
});

test("a change of admin.auth ends every sign-in", async () => {
  const gateway = await start(bearer);
  const cookie = await cookieOf(gateway, { token: TOKEN });
  const page = new AdminClient(gateway, ofPage(gateway, cookie));
  await page.ok("PATCH", "/admin/config/admin", { auth: { token: "sekret-second" } });
  await page.refused(401, "GET", "/admin/session");
  // The file says another one than before: it wins over the one of the API.
  const third = "sekret-third";
  gateway.writeConfig({ admin: { auth: { method: "bearer_token", token: third } } });
  await waitFor("the token of the file counts", async () => (await signIn(gateway, { token: third })).status === 200);
  await page.refused(401, "GET", "/admin/session");
});

test("ip_whitelist counts for the cookie, too", async () => {
  const gateway = await start(
    { ...bearer, ip_whitelist: ["10.0.0.0/8"] },
    { server: { trusted_proxies: ["127.0.0.1"] } },
  );
  const from = (address: string) => ({ ...ofPage(gateway), "X-Forwarded-For": address });
  await expectError(await signIn(gateway, { token: TOKEN }, from("192.0.2.1")), 403);
  const signedIn = await signIn(gateway, { token: TOKEN }, from("10.1.2.3"));
  const Cookie = signedIn.headers.getSetCookie()[0]?.split(";")[0] as string;
  const ask = (address: string) => gateway.fetch("/admin/session", { headers: { ...from(address), Cookie } });
  expect((await ask("10.1.2.3")).status).toBe(200);
  await expectError(await ask("192.0.2.1"), 403);
});

test("under method none there is nothing to sign in to, and nobody comes in from elsewhere", async () => {
  const gateway = await start({});
  const response = await signIn(gateway, {});
  expect(await response.json()).toMatchObject({ method: "none", via: "address", elevated: false, expires_at: null });
  expect(response.headers.getSetCookie()).toEqual([]);
  await expectError(await signIn(gateway, {}, { "X-Forwarded-For": "192.0.2.1" }), 403);
  await expectError(await signIn(gateway, {}, { Host: "evil.example" }), 403);
});

test("what is sent to sign in is bounded, read strictly, and never repeated", async () => {
  const gateway = await start(bearer);
  await expectError(await signIn(gateway, { token: "x".repeat(20_000) }), 413);
  const told = await expectError(await signIn(gateway, { tokn: "sekret-typo" }), 400);
  expect(JSON.stringify(told)).not.toContain("sekret-typo");
});
