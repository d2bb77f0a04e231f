// API keys: permissive and blocking mode, scopes, disabled keys, keys from a file.

import { beforeAll, beforeEach, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { runCommand } from "../support/gateway-process.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();
const backends: ConfigDocument["backends"] = [{ name: "a", url: backend.url, models: ["m"] }];
let blocking: Gateway;

const KEYS = {
  full: "sk-sekret-full",
  reader: "sk-sekret-reader",
  writer: "sk-sekret-writer",
  disabled: "sk-sekret-disabled",
  wrong: "sk-sekret-wrong-1",
};

const keys = [
  { key: KEYS.full, id: "full", user_id: "u1", organization_id: "o1" },
  { key: KEYS.reader, id: "reader", scopes: ["read" as const] },
  { key: KEYS.writer, id: "writer", scopes: ["write" as const] },
  { key: KEYS.disabled, id: "disabled", enabled: false },
];

beforeAll(async () => {
  blocking = await bed.gateway({ config: { backends, api_keys: { mode: "blocking", keys } } });
});

beforeEach(() => backend.reset());

const bearer = (key: string): RequestInit => ({ headers: { Authorization: `Bearer ${key}` } });

async function expectUnauthorized(response: Response): Promise<void> {
  expect(response.status).toBe(401);
  const body = (await response.clone().json()) as { error: Record<string, unknown> };
  expect(body).toMatchObject({
    error: { message: expect.any(String), type: "authentication_error", code: "invalid_api_key" },
  });
  expect(response.headers.get("www-authenticate")).toContain("Bearer");
  await expectError(response, 401);
  expect(backend.requests).toHaveLength(0);
}

test("blocking: without a key, with a wrong, empty or malformed one it is 401 on every protected endpoint", async () => {
  const headers = [
    {},
    bearer(KEYS.wrong).headers,
    { Authorization: "Bearer " },
    { Authorization: `Basic ${KEYS.full}` },
  ];
  for (const init of headers.map((header) => ({ headers: header as Record<string, string> }))) {
    await expectUnauthorized(await blocking.chat({}, init));
    await expectUnauthorized(await blocking.post("/v1/completions", { model: "m", prompt: "x" }, init));
    await expectUnauthorized(await blocking.post("/v1/embeddings", { model: "m", input: "x" }, init));
    await expectUnauthorized(await blocking.fetch("/v1/models", init));
    await expectUnauthorized(await blocking.fetch("/v1/models/m", init));
  }
});

test("blocking: the key is checked before the body is read", async () => {
  await expectUnauthorized(await blocking.post("/v1/chat/completions", "{"));
});

test("blocking: a valid key passes, in any letter case of the scheme, and as x-api-key", async () => {
  for (const headers of [
    { Authorization: `Bearer ${KEYS.full}` },
    { Authorization: `bearer ${KEYS.full}` },
    { "x-api-key": KEYS.full },
  ] as Record<string, string>[]) {
    expect((await blocking.chat({}, { headers })).status).toBe(200);
  }
  expect((await blocking.fetch("/v1/models", bearer(KEYS.full))).status).toBe(200);
});

test("blocking: a disabled key is no key", async () => {
  await expectUnauthorized(await blocking.chat({}, bearer(KEYS.disabled)));
});

test("a key that begins like a valid one, or goes on behind it, is no key", async () => {
  await expectUnauthorized(await blocking.chat({}, bearer(KEYS.full.slice(0, -1))));
  await expectUnauthorized(await blocking.chat({}, bearer(`${KEYS.full}x`)));
});

test("scopes: read lists models, write infers, the other is 403", async () => {
  expect((await blocking.fetch("/v1/models", bearer(KEYS.reader))).status).toBe(200);
  expect((await blocking.fetch("/v1/models/m", bearer(KEYS.reader))).status).toBe(200);
  const noWrite = await expectError(await blocking.chat({}, bearer(KEYS.reader)), 403);
  expect(noWrite.message).toContain("write");
  expect((await blocking.chat({}, bearer(KEYS.writer))).status).toBe(200);
  await expectError(await blocking.fetch("/v1/models", bearer(KEYS.writer)), 403);
});

test("the holder of a key sees what it may do, whatever its scopes, and never its secret", async () => {
  const config: ConfigDocument = {
    backends,
    api_keys: {
      keys: [
        { key: KEYS.writer, id: "writer", scopes: ["write"], rate_limit: 30, models: ["m*"] },
        { key: KEYS.full, id: "full", user_id: "u1", organization_id: "o1", expires_at: "2999-01-01T00:00:00Z" },
        { key: KEYS.reader, id: "ended", expires_at: "2020-01-01T00:00:00Z" },
      ],
    },
    rate_limiting: { enabled: true, limits: { per_api_key: { requests_per_second: 7, burst_capacity: 9 } } },
  };
  await using gateway = await startGateway({ config });
  const ask = (key: string) => gateway.fetch("/v1/me", bearer(key));
  expect(await (await ask(KEYS.writer)).json()).toEqual({
    id: "writer",
    user: null,
    organization: null,
    scopes: ["write"],
    models: ["m"],
    expires_at: null,
    limits: { requests_per_minute: 30 },
    budgets: [],
  });
  expect(await (await ask(KEYS.full)).json()).toEqual({
    id: "full",
    user: "u1",
    organization: "o1",
    scopes: ["read", "write", "files"],
    models: ["m"],
    expires_at: "2999-01-01T00:00:00.000Z",
    limits: { requests_per_second: 7, burst: 9 },
    budgets: [],
  });
  expect((await expectError(await ask(KEYS.reader), 401)).code).toBe("expired_api_key");
  await expectError(await ask("not-needed"), 401);
  await expectError(await gateway.fetch("/v1/me"), 401);
});

test("health endpoints need no key", async () => {
  for (const path of ["/health", "/healthz", "/readyz"]) expect((await blocking.fetch(path)).status).toBe(200);
});

test("the key never reaches the backend", async () => {
  await blocking.chat({}, bearer(KEYS.full));
  expect(JSON.stringify(backend.lastRequest.rawHeaders)).not.toContain("sekret");
});

test("permissive: without a key and with a placeholder key requests are served", async () => {
  await using gateway = await startGateway({ config: { backends, api_keys: { keys } } });
  expect((await gateway.chat()).status).toBe(200);
  expect((await gateway.chat({}, bearer("not-needed"))).status).toBe(200);
  expect((await gateway.chat({}, bearer(KEYS.full))).status).toBe(200);
  expect((await gateway.fetch("/v1/models")).status).toBe(200);
});

test("the access log names the key by its id, never by itself", async () => {
  await blocking.chat({}, bearer(KEYS.writer));
  await waitFor("the line of the request", () => blocking.printed.logEntries.some(({ key }) => key === "writer"));
  expect(blocking.printed.stderr).not.toContain("sekret");
});

test("keys come from a file beside the configuration", async () => {
  await using gateway = await startGateway({
    config: { backends, api_keys: { mode: "blocking", api_keys_file: "secrets/keys.yaml" } },
    files: { "secrets/keys.yaml": "keys:\n  - key: ${FILE_KEY}\n    id: from-file\n    scopes: [write]\n" },
    environment: { FILE_KEY: "sk-sekret-from-file" },
  });
  expect((await gateway.chat({}, bearer("sk-sekret-from-file"))).status).toBe(200);
  expect((await gateway.chat()).status).toBe(401);
});

test("a key file that is missing or wrong is a start error that names the file and shows no key", async () => {
  const config: ConfigDocument = { backends, api_keys: { mode: "blocking", api_keys_file: "keys.yaml" } };
  const missing = await runCommand({ config });
  expect(missing.exitCode).toBe(1);
  expect(missing.stderr).toContain("keys.yaml");
  const wrong = await runCommand({
    config,
    files: { "keys.yaml": "keys:\n  - key: sk-sekret-x\n    scopes: [all]\n" },
  });
  expect(wrong.exitCode).toBe(1);
  expect(wrong.stderr).toContain("keys.yaml");
  expect(wrong.stderr).toContain("scopes");
  expect(wrong.stderr).not.toMatch(/^\s+at /m);
});
