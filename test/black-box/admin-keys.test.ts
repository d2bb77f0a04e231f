// /admin/keys: keys added, changed, rotated and removed one by one; expiry and allowed models.

import { beforeEach, describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import type { GatewayParts } from "../support/gateway-parts.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();

beforeEach(() => backend.reset());

type Keys = NonNullable<NonNullable<ConfigDocument["api_keys"]>["keys"]>;

const A = "sekret-of-tenant-a";
const B = "sekret-of-tenant-b";

function start(keys: Keys, options: GatewayParts = {}, more: ConfigDocument = {}): Promise<Gateway> {
  return startGateway({
    ...options,
    config: {
      backends: [{ name: "b", url: backend.url, models: ["m", "gpt-4o", "gpt-4o-mini", "llama3"] }],
      api_keys: { mode: "blocking", keys },
      ...more,
    },
  });
}

const as = (key: string): RequestInit => ({ headers: { authorization: `Bearer ${key}` } });

async function statusOf(gateway: Gateway, key: string, model = "m"): Promise<number> {
  const response = await gateway.chat({ model }, as(key));
  await response.text();
  return response.status;
}

interface Record {
  id: string;
  key: string;
  previous_until: string | null;
  [field: string]: unknown;
}

describe("one key at a time", () => {
  test("the life of a key: no change makes a version of the configuration, shows a secret twice or ends at a restart", async () => {
    await using gateway = await start([{ key: A, id: "a" }]);
    const admin = new AdminClient(gateway);
    const created = await admin.send("POST", "/admin/keys", { body: { id: "b", user_id: "u", rate_limit: 600 } });
    expect(created.status).toBe(201);
    expect(created.headers.get("cache-control")).toBe("no-store");
    const { key, secret, version } = created.body as { key: Record; secret: string; version: number };
    expect(version).toBe(1);
    expect(secret).toMatch(/^sk-signalbox-[\w-]{43}$/);
    expect(key).toMatchObject({ id: "b", key: "********", user_id: "u", rate_limit: 600, source: "key_store" });
    expect(await statusOf(gateway, secret)).toBe(200);

    for (const path of ["/admin/keys", "/admin/keys/b", "/admin/config/full", "/admin/config/history"]) {
      const { text } = await admin.send("GET", path);
      expect(text).not.toContain(secret);
    }
    const { keys, total } = await admin.get("/admin/keys");
    expect((keys as Record[]).map(({ id }) => id)).toEqual(["a", "b"]);
    expect(total).toBe(2);

    await admin.ok("PUT", "/admin/keys/b", { enabled: false });
    expect(await statusOf(gateway, secret)).toBe(401);
    const changed = await admin.ok("PUT", "/admin/keys/b", { enabled: true, rate_limit: null });
    expect(changed).toMatchObject({ version: 3, applied: true, key: { rate_limit: null, version: 3 } });
    expect(await admin.version()).toBe(1);
    await gateway.restart();
    expect(await statusOf(gateway, secret)).toBe(200);

    const removed = await new AdminClient(gateway).ok("DELETE", "/admin/keys/b");
    expect(removed).toMatchObject({ version: 3, removed_key: { id: "b", key: "********" } });
    expect(await statusOf(gateway, secret)).toBe(401);
    await admin.refused(404, "GET", "/admin/keys/b");
    expect(await statusOf(gateway, A)).toBe(200);
  });

  test("a secret of one's own is taken, and never shown", async () => {
    await using gateway = await start([{ key: A, id: "a" }]);
    const admin = new AdminClient(gateway);
    const body = await admin.ok("POST", "/admin/keys", { key: B, id: "b" });
    expect(body).not.toHaveProperty("secret");
    expect(await statusOf(gateway, B)).toBe(200);
    await admin.ok("PUT", "/admin/keys/b", { key: "sekret-of-b-changed" });
    expect(await statusOf(gateway, B)).toBe(401);
    expect(await statusOf(gateway, "sekret-of-b-changed")).toBe(200);
  });

  test("what cannot be is refused with the field, and changes nothing", async () => {
    await using gateway = await start([{ key: A, id: "a" }, { key: B }]);
    const admin = new AdminClient(gateway);
    const [, other] = (await admin.get("/admin/keys")).keys as Record[];
    await admin.refused(409, "POST", "/admin/keys", { id: "a" });
    await admin.refused(409, "POST", "/admin/keys", { id: other?.id });
    const cases: [method: string, path: string, body: unknown, field: string][] = [
      ["POST", "/admin/keys", { key: "short" }, "key"],
      ["POST", "/admin/keys", { key: A }, "key"],
      ["POST", "/admin/keys", { id: 5 }, "id"],
      ["POST", "/admin/keys", { scopes: ["all"] }, "scopes[0]"],
      ["POST", "/admin/keys", { expires_at: "tomorrow" }, "expires_at"],
      ["POST", "/admin/keys", { models: [] }, "models"],
      ["POST", "/admin/keys", { bogus: 1 }, "bogus"],
      ["POST", "/admin/keys", { previous: { key: B } }, "previous"],
      ["PUT", "/admin/keys/a", { id: "c" }, "id"],
      ["PUT", "/admin/keys/a", { key: B }, "api_keys.keys[1].key"],
      ["POST", "/admin/keys/a/rotate", { overlap: "soon" }, "overlap"],
      ["POST", "/admin/keys/a/rotate", { overlap: "9000h" }, "overlap"],
      ["POST", "/admin/keys/a/rotate", { key: B }, "api_keys.keys[1].key"],
    ];
    for (const [method, path, body, field] of cases) {
      const { fields } = await admin.refused(400, method, path, body);
      expect([JSON.stringify(body), fields]).toEqual([JSON.stringify(body), [field]]);
    }
    for (const method of ["GET", "DELETE"]) await admin.refused(404, method, "/admin/keys/none");
    await admin.refused(404, "PUT", "/admin/keys/none", {});
    await admin.refused(404, "POST", "/admin/keys/none/rotate", {});
    await admin.refused(405, "POST", "/admin/keys/a", {});
    await admin.refused(409, "PUT", "/admin/keys/a", { enabled: false, version: 7 });
    await admin.refused(409, "DELETE", "/admin/keys/a", undefined, { headers: { "If-Match": '"7"' } });
    expect(await admin.version()).toBe(1);
  });

  test("a dry run shows no secret and changes nothing", async () => {
    await using gateway = await start([{ key: A, id: "a" }]);
    const admin = new AdminClient(gateway);
    for (const [method, path] of [
      ["POST", "/admin/keys"],
      ["PUT", "/admin/keys/a"],
      ["POST", "/admin/keys/a/rotate"],
      ["DELETE", "/admin/keys/a"],
    ] as const) {
      const body = await admin.ok(method, `${path}?dry_run=true`, method === "PUT" ? { rate_limit: 5 } : {});
      expect(body).toMatchObject({ dry_run: true, applied: false, version: 1 });
      expect(body).not.toHaveProperty("secret");
      expect(Object.keys(body.changes as object)).not.toEqual([]);
      expect(JSON.stringify(body)).not.toContain("sekret");
    }
    const { changes } = await admin.ok("PUT", "/admin/keys/a?dry_run=true", { rate_limit: 5 });
    expect(changes).toEqual({ "keys.a.rate_limit": { from: null, to: 5 } });
    expect(await statusOf(gateway, A)).toBe(200);
  });

  test("a key of api_keys_file is shown, and changed there only", async () => {
    const files = { "keys.yaml": `keys:\n  - {key: ${B}, id: from-file}\n` };
    const api_keys: ConfigDocument["api_keys"] = { mode: "blocking", keys: [{ key: A }], api_keys_file: "keys.yaml" };
    await using gateway = await start([], { files }, { api_keys });
    const admin = new AdminClient(gateway);
    expect(await admin.get("/admin/keys/from-file")).toMatchObject({ source: "api_keys_file", key: "********" });
    await admin.refused(409, "PUT", "/admin/keys/from-file", { enabled: false });
    await admin.refused(409, "DELETE", "/admin/keys/from-file");
    await admin.refused(409, "POST", "/admin/keys", { id: "from-file" });
    await admin.ok("POST", "/admin/keys", { id: "third" });
    expect(await statusOf(gateway, B)).toBe(200);
  });

  test("a key without id is found under its name, and keeps what it owns when that becomes its id", async () => {
    await using gateway = await start([{ key: A }], {}, { response_cache: { enabled: true } });
    const admin = new AdminClient(gateway);
    const [{ id }] = (await admin.get("/admin/keys")).keys as [Record];
    const cached = async (key: string) => (await gateway.chat({ temperature: 0 }, as(key))).headers.get("x-cache");
    expect(await cached(A)).toBe("MISS");
    await admin.ok("PUT", `/admin/keys/${id}`, { id });
    const { secret } = await admin.ok("POST", `/admin/keys/${id}/rotate`, {});
    expect(await cached(secret as string)).toBe("HIT");
  });
});

describe("rotation", () => {
  test("the old secret stays valid for the overlap, then ends by itself", async () => {
    await using gateway = await start([{ key: A, id: "a" }]);
    const admin = new AdminClient(gateway);
    const rotated = await admin.send("POST", "/admin/keys/a/rotate", { body: { overlap: "2s" } });
    const { key, secret, warnings } = rotated.body as { key: Record; secret: string; warnings: string[] };
    expect(rotated.headers.get("cache-control")).toBe("no-store");
    expect(warnings).toEqual([expect.stringContaining("the entry 'a' of api_keys.keys")]);
    expect(Date.parse(key.previous_until as string)).toBeGreaterThan(Date.now());
    expect(await statusOf(gateway, secret)).toBe(200);
    await waitFor("the old secret ends", async () => (await statusOf(gateway, A)) === 401);
    expect(await expectError(await gateway.chat({}, as(A)), 401)).toMatchObject({ code: "expired_api_key" });
    expect(await statusOf(gateway, secret)).toBe(200);
    expect(await admin.version()).toBe(2);
    expect(await admin.get("/admin/keys/a")).toMatchObject({ previous_until: null });
  });

  test("both secrets are one key: limits and answers are shared; no overlap ends the old one at once", async () => {
    await using gateway = await start([{ key: A, id: "a" }], {}, { response_cache: { enabled: true } });
    const admin = new AdminClient(gateway);
    const cached = async (key: string) => (await gateway.chat({ temperature: 0 }, as(key))).headers.get("x-cache");
    await cached(A);
    const { secret } = (await admin.ok("POST", "/admin/keys/a/rotate")) as { secret: string };
    expect([await cached(A), await cached(secret)]).toEqual(["HIT", "HIT"]);
    await gateway.restart();
    expect([await statusOf(gateway, A), await statusOf(gateway, secret)]).toEqual([200, 200]);

    const again = await new AdminClient(gateway).ok("POST", "/admin/keys/a/rotate", { overlap: "0s", key: B });
    expect(again).not.toHaveProperty("secret");
    expect(again.warnings).toContain("the secret before this one is not valid any more");
    expect([await statusOf(gateway, A), await statusOf(gateway, secret), await statusOf(gateway, B)]).toEqual([
      401, 401, 200,
    ]);
  });

  test("a secret from the environment stays as it was, and the overlap is ended by null", async () => {
    const environment = { TEAM_KEY: "sekret-with-${}-inside" };
    await using gateway = await start([{ key: "${TEAM_KEY}", id: "a" }], { environment });
    const admin = new AdminClient(gateway);
    const { warnings } = await admin.ok("POST", "/admin/keys/a/rotate", { overlap: "1h" });
    expect(warnings).toEqual([expect.stringContaining("the variable TEAM_KEY")]);
    expect(await statusOf(gateway, environment.TEAM_KEY)).toBe(200);
    await admin.ok("PUT", "/admin/keys/a", { previous: null });
    expect(await statusOf(gateway, environment.TEAM_KEY)).toBe(401);
  });

  test("without an id the new secret is another key, and the answer says so", async () => {
    await using gateway = await start([{ key: A }]);
    const admin = new AdminClient(gateway);
    const [{ id }] = (await admin.get("/admin/keys")).keys as [Record];
    const { key, warnings } = await admin.ok("POST", `/admin/keys/${id}/rotate`, {});
    expect((key as Record).id).not.toBe(id);
    expect(warnings).toContainEqual(expect.stringContaining("has no id"));
  });

  test("rotated keys open the admin API as long as they are valid", async () => {
    const auth = { method: "api_key", token: "sekret-admin-token" } as const;
    await using gateway = await start(
      [{ key: A, id: "a", scopes: ["admin"] }],
      { awaitHealth: false },
      { admin: { auth } },
    );
    const admin = new AdminClient(gateway, { "X-API-Key": "sekret-admin-token" });
    await admin.ok("POST", "/admin/keys/a/rotate", { key: B, overlap: "2s" });
    const ask = async (key: string) => (await gateway.fetch("/admin/keys", { headers: { "X-API-Key": key } })).status;
    expect(await ask(B)).toBe(200);
    await waitFor("the old one ends", async () => (await ask(A)) === 401);
    expect(await ask(B)).toBe(200);
  });
});

test("an expired key is 401 and says so, in mode permissive too", async () => {
  const keys: Keys = [{ key: A, id: "a", expires_at: "2020-01-01T00:00:00Z" }];
  await using gateway = await start(keys, {}, { api_keys: { mode: "permissive", keys } });
  const error = await expectError(await gateway.chat({}, as(A)), 401);
  expect(error).toMatchObject({ code: "expired_api_key", message: expect.stringContaining("expired") });
  expect(await new AdminClient(gateway).get("/admin/keys/a")).toMatchObject({ is_expired: true });
  expect(await statusOf(gateway, "sk-placeholder")).toBe(200);
});

describe("allowed models", () => {
  const keys: Keys = [
    { key: A, id: "a", models: ["gpt-4o*", "qwen"] },
    { key: B, id: "b" },
  ];

  test("others are 403 on every endpoint, and no backend is asked", async () => {
    await using gateway = await start(keys);
    expect([await statusOf(gateway, A, "gpt-4o"), await statusOf(gateway, A, "gpt-4o-mini")]).toEqual([200, 200]);
    const asked = backend.requests.length;
    for (const [path, body] of [
      ["/v1/chat/completions", { messages: [{ role: "user", content: "x" }] }],
      ["/v1/completions", { prompt: "x" }],
      ["/v1/responses", { input: "x" }],
      ["/v1/embeddings", { input: "x" }],
      ["/v1/rerank", { query: "x", documents: ["y"] }],
      ["/embed_sparse", { inputs: "x" }],
      ["/v1/messages", { max_tokens: 1, messages: [{ role: "user", content: "x" }] }],
      ["/v1/messages/count_tokens", { messages: [{ role: "user", content: "x" }] }],
    ] as const) {
      for (const model of ["llama3", "no-such-model"]) {
        const response = await gateway.post(path, { model, ...body }, as(A));
        expect([path, response.status]).toEqual([path, 403]);
        expect(await response.text()).toContain("may not use this model");
      }
    }
    const error = await expectError(await gateway.chat({ model: "llama3" }, as(A)), 403);
    expect(error).toMatchObject({ code: "model_not_allowed", param: "model" });
    expect(backend.requests).toHaveLength(asked);
    expect(await statusOf(gateway, B, "llama3")).toBe(200);
  });

  test("model lists have the allowed ones only", async () => {
    await using gateway = await start(keys);
    for (const path of ["/v1/models", "/anthropic/v1/models"]) {
      const list = async (key: string) => {
        const { data } = (await (await gateway.fetch(path, as(key))).json()) as { data: { id: string }[] };
        return data.map(({ id }) => id).sort();
      };
      expect(await list(A)).toEqual(["gpt-4o", "gpt-4o-mini"]);
      expect(await list(B)).toEqual(["gpt-4o", "gpt-4o-mini", "llama3", "m"]);
      expect((await gateway.fetch(`${path}/gpt-4o`, as(A))).status).toBe(200);
      expect((await gateway.fetch(`${path}/llama3`, as(A))).status).toBe(403);
    }
  });

  test("of an alias the model counts that it leads to", async () => {
    const aliases = { haiku: "gpt-4o-mini", opus: "llama3" };
    await using gateway = await start(keys, {}, { model_aliases: aliases });
    const body = { max_tokens: 1, messages: [{ role: "user", content: "x" }] };
    expect((await gateway.post("/v1/messages", { model: "claude-haiku-4-5", ...body }, as(A))).status).toBe(200);
    expect((await gateway.post("/v1/messages", { model: "claude-opus-4-5", ...body }, as(A))).status).toBe(403);
  });
});

test("a change of the list as a whole names the keys that it drops", async () => {
  await using gateway = await start([{ key: A, id: "a" }, { key: B }]);
  const admin = new AdminClient(gateway);
  const [, unnamed] = (await admin.get("/admin/keys")).keys as Record[];
  const keys = [{ key: "********", id: "a" }];
  for (const query of ["?dry_run=true", ""]) {
    const { warnings } = await admin.ok("PATCH", `/admin/config/api_keys${query}`, { keys });
    expect(warnings).toEqual([expect.stringContaining(`${unnamed?.id} removed`)]);
  }
  const { warnings } = await admin.ok("PUT", "/admin/config/api_keys", { mode: "permissive" });
  expect(warnings).toEqual([expect.stringContaining("a removed")]);
  await admin.refused(400, "PATCH", "/admin/config/api_keys", { keys: [{ key: A, id: "a" }] });
  const kept = await admin.ok("PATCH", "/admin/config/api_keys", { keys: [{ key: "sekret-other", id: "a" }] });
  expect(kept.warnings).toEqual([]);
});
