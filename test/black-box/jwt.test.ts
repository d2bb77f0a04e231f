// Tokens of issuers (api_keys.jwt): who they let in, whom not, and what becomes of changed keys.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { generateKeyPairSync, sign } from "node:crypto";
import fc from "fast-check";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { workerCount } from "../support/gateway-parts.ts";
import { runCommand } from "../support/gateway-process.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const ISSUER = "https://login.example.com";
const NARROW = "https://narrow.example.com";
const bed = createTestBed();
const backend = bed.backend();
const backends: ConfigDocument["backends"] = [{ name: "a", url: backend.url, models: ["m", "other"] }];

interface Pair {
  alg: string;
  kid: string | undefined;
  privateKey: CryptoKey;
  public: { kid: string; alg: string };
}

const withoutName = (pair: Pair): Pair => ({ ...pair, kid: undefined });

async function newPair(kid: string, alg = "ES256"): Promise<Pair> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  return { alg, kid, privateKey, public: { ...(await exportJWK(publicKey)), kid, alg } };
}

/** The address of an issuer's keys. */
class KeyServer {
  keys: object[] = [];
  isAway = false;
  asked = 0;
  readonly #server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => {
      this.asked++;
      return this.isAway ? new Response("later", { status: 503 }) : Response.json({ keys: this.keys });
    },
  });
  readonly url = `http://127.0.0.1:${this.#server.port}/jwks`;
  stop = () => this.#server.stop(true);
}

const server = new KeyServer();
let first: Pair;
let stranger: Pair;
let gateway: Gateway;

const issuer = (more: object = {}) => ({ issuer: ISSUER, audience: "signalbox", jwks_url: server.url, ...more });
const configOf = (...jwt: object[]) => ({ backends, api_keys: { mode: "blocking", jwt } }) as ConfigDocument;

beforeAll(async () => {
  [first, stranger] = [await newPair("first"), await newPair("first")];
  server.keys = [first.public];
  const claims = { organization: "org.name", scopes: "scope", models: "https://example.com/models" };
  gateway = await bed.gateway({ config: configOf(issuer(), issuer({ issuer: NARROW, claims })) });
});
beforeEach(() => backend.reset());
afterAll(() => server.stop());

interface TokenOptions {
  pair?: Pair;
  claims?: { [Name in keyof JWTPayload]: JWTPayload[Name] | undefined };
  /** Seconds from now. */
  expires?: number;
}

function tokenOf({ pair = first, claims = {}, expires = 600 }: TokenOptions = {}): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  return new SignJWT({ iss: ISSUER, aud: "signalbox", sub: "alice", exp: now + expires, ...claims } as JWTPayload)
    .setProtectedHeader({ alg: pair.alg, ...(pair.kid !== undefined && { kid: pair.kid }) })
    .sign(pair.privateKey);
}

const bearer = (token: string): RequestInit => ({ headers: { Authorization: `Bearer ${token}` } });
const ask = async (options?: TokenOptions, at = gateway) => at.chat({}, bearer(await tokenOf(options)));

test("a token of an issuer lets its user in, who is named in the log; as x-api-key too", async () => {
  expect((await ask()).status).toBe(200);
  expect((await gateway.chat({}, { headers: { "x-api-key": await tokenOf() } })).status).toBe(200);
  await waitFor("the line", () => gateway.printed.logEntries.some(({ key }) => key === "jwt:alice"));
  const token = await tokenOf();
  await gateway.chat({}, bearer(token));
  expect(JSON.stringify(backend.lastRequest.rawHeaders)).not.toContain(token);
  expect(gateway.printed.stderr).not.toContain(token);
});

describe("a token is refused with 401, and told why", () => {
  const refusals: [what: string, options: () => TokenOptions, why: string][] = [
    ["signed by another key of the same name", () => ({ pair: stranger }), "signature is wrong"],
    ["for another audience", () => ({ claims: { aud: "elsewhere" } }), "claim 'aud'"],
    ["without an end", () => ({ claims: { exp: undefined } }), "claim 'exp'"],
    ["not valid yet", () => ({ claims: { nbf: Math.floor(Date.now() / 1000) + 300 } }), "claim 'nbf'"],
    ["without a user", () => ({ claims: { sub: undefined } }), "no claim 'sub'"],
    ["of another issuer", () => ({ claims: { iss: "https://evil.example.com" } }), "not valid"],
    ["that has ended, beyond the skew of clocks", () => ({ expires: -31 }), "has expired"],
  ];
  test.each(refusals)("%s", async (_, options, why) => {
    const response = await ask(options());
    expect(response.headers.get("www-authenticate")).toStartWith("Bearer");
    expect((await expectError(response, 401)).message).toContain(why);
    expect(backend.requests).toBeEmpty();
  });

  test("without a signature, or signed with the public key as a secret", async () => {
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const claims = { iss: ISSUER, aud: "signalbox", sub: "alice", exp: Math.floor(Date.now() / 1000) + 60 };
    await expectError(await gateway.chat({}, bearer(`${encode({ alg: "none" })}.${encode(claims)}.AA`)), 401);
    const secret = new TextEncoder().encode(JSON.stringify(first.public));
    const confused = await new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: first.public.kid }).sign(secret);
    expect((await expectError(await gateway.chat({}, bearer(confused)), 401)).message).toContain("algorithm");
  });

  test("changed at any place", async () => {
    const token = await tokenOf();
    const place = fc.nat({ max: token.length - 1 });
    const letter = fc.constantFrom(..."AZaz09-_.");
    await fc.assert(
      fc.asyncProperty(place, letter, async (at, replacement) => {
        const changed = token.slice(0, at) + replacement + token.slice(at + 1);
        // The last letter of a signature has bits that mean nothing.
        fc.pre(changed !== token && at < token.length - 1);
        const response = await gateway.chat({}, bearer(changed));
        await response.text();
        expect(response.status).toBe(401);
      }),
      { numRuns: 60 },
    );
  });
});

test("a key of the issuer that is too short to be safe lets nobody in, and is no bug", async () => {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 1024 });
  const key = { ...publicKey.export({ format: "jwk" }), kid: "short", alg: "RS256" };
  const own = await bed.gateway({
    config: configOf({ issuer: ISSUER, audience: "signalbox", jwks_file: "keys.json" }),
    files: { "keys.json": JSON.stringify({ keys: [key] }) },
  });
  const claims = { iss: ISSUER, aud: "signalbox", sub: "alice", exp: Math.floor(Date.now() / 1000) + 60 };
  const parts = [{ alg: "RS256", kid: "short" }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString("base64url"),
  );
  const signature = sign("sha256", Buffer.from(parts.join(".")), privateKey).toString("base64url");
  const refusal = await own.chat({}, bearer([...parts, signature].join(".")));
  expect((await expectError(refusal, 401)).message).toContain("cannot be used");
});

test("within the skew of clocks a token still counts", async () => {
  expect((await ask({ expires: -5 })).status).toBe(200);
});

test("claims say the organization, the scopes and the models; without them there are none", async () => {
  const iss = NARROW;
  const models = { "https://example.com/models": ["m*"] };
  const all = { iss, org: { name: "sales" }, scope: "openid write admin", ...models };
  expect((await ask({ claims: all })).status).toBe(200);
  const listing = await gateway.fetch("/v1/models", bearer(await tokenOf({ claims: all })));
  expect((await expectError(listing, 403)).message).toContain("'read'");
  const denied = await gateway.chat({ model: "other" }, bearer(await tokenOf({ claims: all })));
  expect((await expectError(denied, 403)).code).toBe("model_not_allowed");
  await expectError(await ask({ claims: { iss, ...models } }), 403);
  await expectError(await ask({ claims: { iss, scope: "write" } }), 403);
});

test("GET /v1/me tells the holder of a token what it may do", async () => {
  const claims = { iss: NARROW, org: { name: "sales" }, scope: "write", "https://example.com/models": "m" };
  const response = await gateway.fetch("/v1/me", bearer(await tokenOf({ claims })));
  expect(await response.json()).toEqual({
    id: "jwt:alice",
    user: "alice",
    organization: "sales",
    scopes: ["write"],
    models: ["m"],
    expires_at: expect.any(String),
    limits: {},
    budgets: [],
  });
});

test("no token opens the admin API", async () => {
  const config = {
    ...configOf(issuer({ claims: { scopes: "scope" } })),
    admin: { auth: { method: "api_key", token: "sekret-admin" } },
  };
  const guarded = await bed.gateway({ config: config as ConfigDocument, awaitHealth: false });
  const headers = { "x-api-key": await tokenOf({ claims: { scope: "admin write read" } }) };
  expect((await guarded.fetch("/admin/config", { headers })).status).toBe(401);
});

test("permissive: a broken token of an issuer is refused, a stranger's passes as a placeholder", async () => {
  const config = { ...configOf(issuer()), api_keys: { jwt: [issuer()] } } as ConfigDocument;
  const permissive = await bed.gateway({ config });
  await expectError(await ask({ pair: stranger }, permissive), 401);
  expect((await ask({ claims: { iss: "https://elsewhere.example.com" } }, permissive)).status).toBe(200);
  expect((await permissive.chat({}, bearer("not-needed"))).status).toBe(200);
});

test("the limit of requests counts each user", async () => {
  const limits = { per_api_key: { requests_per_second: 1, burst_capacity: 1 } };
  const config = { ...configOf(issuer()), rate_limiting: { enabled: true, limits } } as ConfigDocument;
  const limited = await bed.gateway({ config });
  expect((await ask({}, limited)).status).toBe(200);
  expect((await ask({ claims: { jti: "another token" } }, limited)).status).toBe(429);
  expect((await ask({ claims: { sub: "bob" } }, limited)).status).toBe(200);
});

test("keys that the issuer withdraws count no longer, and unknown keys are asked for once a minute", async () => {
  const keys = new KeyServer();
  const [old, next] = [await newPair("old"), await newPair("next")];
  keys.keys = [old.public];
  const own = await bed.gateway({ config: configOf(issuer({ jwks_url: keys.url })) });
  const oldToken = await tokenOf({ pair: old });
  expect((await own.chat({}, bearer(oldToken))).status).toBe(200);
  keys.keys = [next.public];
  for (let time = 0; time < 5; time++) await expectError(await ask({ pair: next }, own), 401);
  // Each process has its own.
  expect(keys.asked).toBeLessThanOrEqual(1 + (workerCount() > 1 ? workerCount() : 0));
  // A change of the section begins with the keys of now.
  own.writeConfig(configOf(issuer({ jwks_url: `${keys.url}?second` })));
  await waitFor("its keys count", async () => (await ask({ pair: next }, own)).status === 200);
  await expectError(await own.chat({}, bearer(oldToken)), 401);
  keys.stop();
});

test("keys that cannot be fetched are 503 until they can, and those that were fetched stay", async () => {
  const keys = new KeyServer();
  keys.isAway = true;
  keys.keys = [first.public];
  const own = await bed.gateway({ config: configOf(issuer({ jwks_url: keys.url })) });
  expect((await expectError(await ask({}, own), 503)).code).toBe("token_keys_unavailable");
  expect(own.printed.stderr).toContain("the keys of a token issuer cannot be fetched");
  keys.isAway = false;
  await waitFor("the keys are fetched", async () => (await ask({}, own)).status === 200);
  keys.isAway = true;
  expect((await ask({ claims: { jti: "new" } }, own)).status).toBe(200);
  keys.stop();
});

test("keys of a file are followed when it changes, and tokens of keys without names are tried with each", async () => {
  const [one, two] = [await newPair("one"), await newPair("two")];
  const setOf = (...pairs: Pair[]) => JSON.stringify({ keys: pairs.map(({ public: { kid: _, ...key } }) => key) });
  const own = await bed.gateway({
    config: configOf({ issuer: ISSUER, audience: ["signalbox"], jwks_file: "keys.json" }),
    files: { "keys.json": setOf(one, two) },
  });
  for (const pair of [one, two]) {
    expect((await ask({ pair: withoutName(pair) }, own)).status).toBe(200);
  }
  await expectError(await ask({ pair: stranger }, own), 401);
  await Bun.write(`${own.folder}/keys.json`, setOf(two));
  await waitFor("the first key is withdrawn", async () => (await ask({ pair: withoutName(one) }, own)).status === 401);
  expect((await ask({ pair: withoutName(two) }, own)).status).toBe(200);
});

describe("what the configuration refuses", () => {
  const wrong: [what: string, jwt: object | object[], files: Record<string, string>, told: string][] = [
    ["no keys", { issuer: ISSUER, audience: "x" }, {}, "api_keys.jwt[0].jwks_url: is missing; or name jwks_file"],
    ["the same issuer twice", [issuer(), issuer()], {}, `"${ISSUER}" is already the issuer of jwt[0]`],
    ["both", issuer({ jwks_file: "k.json" }), { "k.json": '{"keys":[{"kty":"EC"}]}' }, "cannot stand beside jwks_file"],
    ["a shared secret", issuer({ algorithms: ["HS256"] }), {}, "api_keys.jwt[0].algorithms[0]"],
    ["a password", issuer({ jwks_url: "https://u:sekret-p@x/keys" }), {}, "without user and password"],
    [
      "a private key",
      { issuer: ISSUER, audience: "x", jwks_file: "k.json" },
      { "k.json": '{"keys":[{"kty":"EC","d":"sekret"}]}' },
      "holds a secret key (number 1); leave only the public part",
    ],
    ["no file", { issuer: ISSUER, audience: "x", jwks_file: "gone.json" }, {}, "api_keys.jwt[0].jwks_file"],
  ];
  test.each(wrong)("%s", async (_, jwt, files, told) => {
    const { exitCode, stderr } = await runCommand({ config: configOf(...[jwt].flat()), files });
    expect(exitCode).toBe(1);
    expect(stderr).toContain(told);
    expect(stderr).not.toContain("sekret");
  });
});

test("the rate_limit of an organization holds for each of its tokens, and is told", async () => {
  const claims = { organization: "org" };
  const limited = await bed.gateway({
    config: { ...configOf(issuer({ claims })), organizations: [{ id: "sales", rate_limit: 2 }] },
  });
  const of = (sub: string, org: string) => ask({ claims: { sub, org } }, limited);
  const first = await of("alice", "sales");
  const told = ["limit", "remaining"].map((what) => first.headers.get(`x-ratelimit-${what}-requests`));
  expect([first.status, ...told]).toEqual([200, "2", "1"]);
  const rest = [await of("alice", "sales"), await of("alice", "sales"), await of("bob", "sales")];
  expect(rest.map(({ status }) => status)).toEqual([200, 429, 200]);
  expect((await of("carol", "other")).headers.get("x-ratelimit-limit-requests")).toBeNull();
});
