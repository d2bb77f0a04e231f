// Sign-in at an OpenID provider, over sockets: what a browser does, and what an attacker would like to.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { AdminClient } from "../support/admin-client.ts";
import { freePort } from "../support/free-port.ts";
import type { Gateway } from "../support/gateway.ts";
import { OIDC_CLIENT, startOidcProvider, type TestProvider } from "../support/oidc-provider.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
let provider: TestProvider;
let gateway: Gateway;
let port: number;

const TOKEN = "sekret-token-of-scripts";
const ROLES = { admin: ["boss"], operator: ["on-call"], viewer: ["reader"] };

beforeAll(async () => {
  port = await freePort();
  provider = await startOidcProvider([`http://127.0.0.1:${port}`, "https://gateway.example"]);
  for (const [name, roles] of Object.entries({ ann: ["boss", "reader"], olga: ["on-call"], vera: ["reader"] })) {
    provider.roles.set(name, roles);
  }
  gateway = await start();
});

afterAll(() => provider?.close());

const auth = (more: object = {}) => ({
  method: "oidc" as const,
  token: TOKEN,
  oidc: {
    ...OIDC_CLIENT,
    issuer: provider.issuer,
    scopes: ["openid", "profile", "roles"],
    roles: ROLES,
    ...more,
  },
});

const start = (more: object = {}, at = port) =>
  bed.gateway({
    config: {
      server: { bind_address: `127.0.0.1:${at}` },
      backends: [{ name: "a", type: "demo", models: ["m"] }],
      admin: { auth: auth(more) },
    },
    awaitHealth: false,
  });

/** Keeps cookies by host and path prefix as far as it matters here, and follows redirects one by one. */
class Visitor {
  readonly #cookies = new Map<string, string>();

  async ask(url: string | URL, init: RequestInit = {}): Promise<Response> {
    const { port: at } = new URL(url);
    const cookies = [...this.#cookies].filter(([key]) => key.startsWith(`${at} `)).map(([, cookie]) => cookie);
    const response = await fetch(url, {
      ...init,
      redirect: "manual",
      headers: { ...(init.headers as Record<string, string>), Cookie: cookies.join("; ") },
    });
    for (const cookie of response.headers.getSetCookie()) {
      const pair = cookie.split(";")[0] as string;
      this.#cookies.set(`${at} ${pair.split("=")[0]}`, pair);
    }
    return response;
  }

  get cookies(): string[] {
    return [...this.#cookies.values()];
  }

  /** To the provider, and through its form; the address that it sends the browser back to. */
  async visit(name: string, { to = "/dashboard", go = "yes", tamper = (url: URL) => url, from = gateway } = {}) {
    const begun = await this.ask(`${from.url}/admin/oidc/sign-in?to=${encodeURIComponent(to)}`);
    expect(begun.status).toBe(303);
    let url = tamper(new URL(begun.headers.get("location") as string));
    let response = await this.ask(url);
    while (!url.pathname.startsWith("/admin/oidc/callback")) {
      const isForm = response.status === 200;
      if (isForm) {
        const body = new URLSearchParams({ login: name, go });
        response = await this.ask(url, { method: "POST", body });
      }
      url = new URL(response.headers.get("location") as string, url);
      if (!url.pathname.startsWith("/admin/oidc/callback")) response = await this.ask(url);
    }
    return url;
  }

  /** Where the browser ends. */
  async signIn(name: string, options: Parameters<Visitor["visit"]>[1] = {}): Promise<string> {
    return whereTo(await this.ask(await this.visit(name, options)));
  }

  session(from = gateway): Promise<Response> {
    return this.ask(`${from.url}/admin/session`, { headers: { "Sec-Fetch-Site": "same-origin" } });
  }
}

function whereTo(response: Response): string {
  expect(response.status).toBe(303);
  return response.headers.get("location") as string;
}

const failure = (location: string) => new URL(location, "http://x/admin/oidc/callback").searchParams.get("sign_in");

test("a person signs in, comes back to the page that was asked for, and signs out", async () => {
  const visitor = new Visitor();
  expect(await visitor.signIn("ann", { to: "/dashboard#/backends?x=1" })).toBe("../../dashboard#/backends?x=1");
  const session = await visitor.session();
  expect(await session.json()).toMatchObject({
    method: "oidc",
    name: "ann",
    role: "admin",
    elevated: true,
    via: "session",
  });
  const changed = await visitor.ask(`${gateway.url}/admin/config/retry`, {
    method: "PATCH",
    body: JSON.stringify({ max_attempts: 2 }),
    headers: { Origin: gateway.url, "Content-Type": "application/json" },
  });
  expect(changed.status).toBe(200);
  const history = await new AdminClient(gateway, { Authorization: `Bearer ${TOKEN}` }).get("/admin/config/history");
  expect((history.history as { user: string }[])[0]?.user).toBe("ann");
  const out = await visitor.ask(`${gateway.url}/admin/session`, {
    method: "DELETE",
    headers: { Origin: gateway.url },
  });
  expect(out.status).toBe(200);
  expect((await visitor.session()).status).toBe(401);
});

test("the cookie of the visit is lax and for the sign-in alone, that of the session is strict", async () => {
  const visitor = new Visitor();
  const begun = await visitor.ask(`${gateway.url}/admin/oidc/sign-in`);
  expect(begun.headers.getSetCookie().join()).toMatch(
    new RegExp(`^signalbox_sign_in_${port}=[\\w-]{43}; Path=/admin/oidc; Max-Age=600; HttpOnly; SameSite=Lax$`),
  );
  const asked = new URL(begun.headers.get("location") as string).searchParams;
  expect(Object.fromEntries(asked)).toMatchObject({
    code_challenge_method: "S256",
    redirect_uri: `${gateway.url}/admin/oidc/callback`,
    response_type: "code",
  });
  const back = await visitor.ask(await visitor.visit("vera"));
  expect(back.headers.getSetCookie().join()).toContain("SameSite=Strict");
});

test("the highest role of a person counts, and a person without one is refused", async () => {
  for (const [name, role] of [
    ["olga", "operator"],
    ["vera", "viewer"],
  ] as const) {
    const visitor = new Visitor();
    await visitor.signIn(name);
    expect(await (await visitor.session()).json()).toMatchObject({ name, role, elevated: false });
  }
  const stranger = new Visitor();
  expect(failure(await stranger.signIn("stranger"))).toBe("no_role");
  expect((await stranger.session()).status).toBe(401);
});

test("default_role lets everyone of the provider in", async () => {
  const at = await freePort();
  const other = await startOidcProvider([`http://127.0.0.1:${at}`]);
  const open = await start({ issuer: other.issuer, default_role: "viewer" }, at);
  const visitor = new Visitor();
  await visitor.signIn("stranger", { from: open });
  expect(await (await visitor.session(open)).json()).toMatchObject({ name: "stranger", role: "viewer" });
  await other.close();
});

describe("refused:", () => {
  test("another state, another browser, a missing cookie, and an answer that comes twice", async () => {
    const visitor = new Visitor();
    const back = await visitor.visit("ann");
    const forged = new URL(back);
    forged.searchParams.set("state", "x".repeat(43));
    expect(failure(whereTo(await visitor.ask(forged)))).toBe("over");
    expect(failure(whereTo(await new Visitor().ask(back)))).toBe("over");
    const other = new Visitor();
    await other.ask(`${gateway.url}/admin/oidc/sign-in`);
    expect(failure(whereTo(await other.ask(back)))).toBe("over");
    expect(whereTo(await visitor.ask(back))).toBe("../../dashboard");
    expect(failure(whereTo(await visitor.ask(back)))).toBe("over");
  });

  test("a code that was used before, with a state of its own", async () => {
    const visitor = new Visitor();
    const first = await visitor.visit("ann");
    expect(failure(whereTo(await visitor.ask(first)))).toBeNull();
    const second = await new Visitor().visit("ann");
    const thief = new Visitor();
    const own = await thief.visit("vera");
    own.searchParams.set("code", first.searchParams.get("code") as string);
    expect(failure(whereTo(await thief.ask(own)))).toBe("invalid");
    // A code of another visit does not fit the verifier of this one.
    const another = await thief.visit("vera");
    another.searchParams.set("code", second.searchParams.get("code") as string);
    expect(failure(whereTo(await thief.ask(another)))).toBe("invalid");
    expect((await thief.session()).status).toBe(401);
  });

  test("a foreign nonce, and an answer in the name of another issuer", async () => {
    const visitor = new Visitor();
    const tamper = (url: URL) => {
      url.searchParams.set("nonce", "foreign");
      return url;
    };
    expect(failure(await visitor.signIn("ann", { tamper }))).toBe("invalid");
    const mixed = await visitor.visit("ann");
    mixed.searchParams.set("iss", "https://other.example");
    expect(failure(whereTo(await visitor.ask(mixed)))).toBe("invalid");
    expect((await visitor.session()).status).toBe(401);
  });

  test("what the provider itself refuses", async () => {
    expect(failure(await new Visitor().signIn("ann", { go: "no", to: "/dashboard#/keys" }))).toBe("denied");
    expect(await new Visitor().signIn("ann", { go: "no", to: "/dashboard#/keys" })).toBe(
      "../../dashboard?sign_in=denied#/keys",
    );
  });

  test("pages that are not the gateway's own", async () => {
    for (const to of ["https://evil.example", "//evil.example", "/admin/config", "/dashboardx", "/dashboard\\x", ""]) {
      const response = await gateway.fetch(`/admin/oidc/sign-in?to=${encodeURIComponent(to)}`, { redirect: "manual" });
      expect([to, response.status]).toEqual([to, 400]);
    }
  });
});

test("behind a proxy with TLS the provider sends browsers back there; redirect_url wins", async () => {
  const asked = async (from: Gateway, headers: Record<string, string>) => {
    const response = await from.fetch("/admin/oidc/sign-in", { redirect: "manual", headers });
    return new URL(whereTo(response)).searchParams.get("redirect_uri");
  };
  expect(await asked(gateway, { Host: "gateway.example", "X-Forwarded-Proto": "https" })).toBe(
    "https://gateway.example/admin/oidc/callback",
  );
  const fixed = await start({ redirect_url: "https://gateway.example/box/admin/oidc/callback" }, 0);
  expect(await asked(fixed, {})).toBe("https://gateway.example/box/admin/oidc/callback");
});

test("scripts use the token, a page is told where to sign in, and other methods have no such sign-in", async () => {
  expect((await gateway.fetch("/admin/session", { headers: { Authorization: `Bearer ${TOKEN}` } })).status).toBe(200);
  const refused = await gateway.fetch("/admin/session");
  expect(refused.status).toBe(401);
  expect(await refused.json()).toMatchObject({
    error: {
      details: { method: "oidc", sign_in: "GET /admin/oidc/sign-in", provider: new URL(provider.issuer).host },
    },
  });
  const local = await bed.gateway({ awaitHealth: false });
  expect((await local.fetch("/admin/oidc/sign-in")).status).toBe(404);
  expect((await local.fetch("/admin/oidc/callback?state=x")).status).toBe(404);
});

test("a gateway starts without its provider, says so, and goes on when it is there", async () => {
  const at = await freePort();
  const away = await startOidcProvider([`http://127.0.0.1:${at}`]);
  away.roles.set("ann", ["boss"]);
  away.isAway = true;
  const late = await start({ issuer: away.issuer }, at);
  const visitor = new Visitor();
  expect(whereTo(await visitor.ask(`${late.url}/admin/oidc/sign-in?to=/dashboard%23/keys`))).toBe(
    "../../dashboard?sign_in=unreachable#/keys",
  );
  away.isAway = false;
  await waitFor("the provider is asked again", async () => {
    const response = await visitor.ask(`${late.url}/admin/oidc/sign-in`);
    return whereTo(response).startsWith(away.issuer);
  });
  expect(await visitor.signIn("ann", { from: late })).toBe("../../dashboard");
  const back = await visitor.visit("ann", { from: late });
  away.isAway = true;
  expect(failure(whereTo(await visitor.ask(back)))).not.toBeNull();
  await away.close();
});

test("sign-ins end when the roles of the provider change, and do not come back with them", async () => {
  const at = await freePort();
  const other = await startOidcProvider([`http://127.0.0.1:${at}`]);
  other.roles.set("ann", ["boss"]);
  const changing = await start({ issuer: other.issuer }, at);
  const visitor = new Visitor();
  await visitor.signIn("ann", { from: changing });
  expect((await visitor.session(changing)).status).toBe(200);
  const admin = new AdminClient(changing, { Authorization: `Bearer ${TOKEN}` });
  const set = (roles: object) => admin.ok("PATCH", "/admin/config/admin", { auth: { oidc: { roles } } });
  await set({ admin: ["chief"] });
  expect((await visitor.session(changing)).status).toBe(401);
  await set({ admin: ["boss"] });
  expect((await visitor.session(changing)).status).toBe(401);
  await other.close();
});
