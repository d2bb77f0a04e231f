// Keys of the key store: the configuration does not concern them, a copy of the data folder gives none away, and every
// process knows them at once.

import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openKeyStore } from "../../src/access/key-store.ts";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { AdminClient } from "../support/admin-client.ts";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import type { GatewayParts } from "../support/gateway-parts.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();

const FILE_KEY = "sekret-of-the-file";

const configOf = (more: ConfigDocument = {}): ConfigDocument => ({
  backends: [{ name: "b", url: backend.url, models: ["m"] }],
  api_keys: { mode: "blocking", keys: [{ key: FILE_KEY, id: "file" }] },
  ...more,
});

function start(options: GatewayParts = {}, more: ConfigDocument = {}): Promise<Gateway> {
  return startGateway({ ...options, config: configOf(more) });
}

const as = (key: string): RequestInit => ({ headers: { authorization: `Bearer ${key}` } });

async function statusOf(gateway: Gateway, key: string): Promise<number> {
  const response = await gateway.chat({ model: "m" }, as(key));
  await response.text();
  return response.status;
}

async function make(admin: AdminClient, fields: object): Promise<string> {
  return (await admin.ok("POST", "/admin/keys", fields)).secret as string;
}

test("edits of the file, rollbacks and imports change no key of the store, and bring none back", async () => {
  await using gateway = await start();
  const admin = new AdminClient(gateway);
  const [kept, removed] = [await make(admin, { id: "kept" }), await make(admin, { id: "removed" })];
  await admin.ok("PATCH", "/admin/config/logging", { level: "warn" });
  await admin.ok("DELETE", "/admin/keys/removed");
  const states = async () => [await statusOf(gateway, kept), await statusOf(gateway, removed)];

  await admin.ok("POST", "/admin/config/rollback/1");
  expect(await states()).toEqual([200, 401]);
  await admin.ok("PUT", "/admin/config/api_keys", { mode: "blocking", keys: [] });
  expect(await states()).toEqual([200, 401]);
  expect(await statusOf(gateway, FILE_KEY)).toBe(401);
  const version = await admin.version();
  const text = readFileSync(gateway.configPath, "utf8");
  writeFileSync(gateway.configPath, text.replace("{", '{ "retry": { "max_attempts": 2 },'));
  await waitFor("the edit is a version", async () => (await admin.version()) > version);
  expect(await states()).toEqual([200, 401]);

  const { config } = (await admin.get("/admin/config/api_keys")) as { config: { keys: { id: string }[] } };
  expect(config.keys.map(({ id }) => id)).not.toContain("kept");
  expect(await admin.get("/admin/keys/kept")).toMatchObject({ source: "key_store" });
});

test("a key of the file that comes later with the id of a stored one is warned of; both secrets are valid", async () => {
  await using gateway = await start();
  const admin = new AdminClient(gateway);
  const secret = await make(admin, { id: "twice" });
  const keys = [
    { key: FILE_KEY, id: "file" },
    { key: "sekret-of-the-same-id", id: "twice" },
  ];
  gateway.writeConfig(configOf({ api_keys: { mode: "blocking", keys } }));
  await waitFor("the edit is a version", async () => (await admin.version()) === 2);
  expect([await statusOf(gateway, secret), await statusOf(gateway, "sekret-of-the-same-id")]).toEqual([200, 200]);
  const said = () => gateway.printed.stderrLines.some((line) => line.includes("in the key store: both"));
  await waitFor("the log names it", () => said());
});

test("no file of the data folder holds a secret of the store", async () => {
  await using gateway = await start();
  const admin = new AdminClient(gateway);
  const secret = await make(admin, { id: "a" });
  const rotated = (await admin.ok("POST", "/admin/keys/a/rotate", {})).secret as string;
  expect([await statusOf(gateway, secret), await statusOf(gateway, rotated)]).toEqual([200, 200]);
  const files = readdirSync(join(gateway.folder, "data"), { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  expect(files.map(({ name }) => name)).toContain("keys.db");
  for (const { parentPath, name } of files) {
    const bytes = readFileSync(join(parentPath, name));
    for (const text of [secret, rotated]) expect([name, bytes.includes(text)]).toEqual([name, false]);
  }
});

test("rights, limits and the end of a stored key hold; what was revoked is never a secret again", async () => {
  await using gateway = await start();
  const admin = new AdminClient(gateway);
  const limited = await make(admin, { id: "limited", rate_limit: 2 });
  expect([await statusOf(gateway, limited), await statusOf(gateway, limited)]).toEqual([200, 200]);
  const refused = await expectError(await gateway.chat({ model: "m" }, as(limited)), 429);
  expect(refused.code).toBe("rate_limit_exceeded");
  await admin.ok("PUT", "/admin/keys/limited", { rate_limit: null });
  expect(await statusOf(gateway, limited)).toBe(200);

  const other = await make(admin, { id: "other", models: ["x-*"] });
  expect(await statusOf(gateway, other)).toBe(403);
  await admin.ok("PUT", "/admin/keys/other", { models: null, expires_at: "2020-01-01T00:00:00Z" });
  expect(await expectError(await gateway.chat({}, as(other)), 401)).toMatchObject({ code: "expired_api_key" });

  const chosen = "sekret-that-was-chosen";
  await admin.ok("POST", "/admin/keys", { id: "chosen", key: chosen });
  expect((await admin.refused(400, "POST", "/admin/keys", { id: "twice", key: chosen })).fields).toEqual(["key"]);
  await admin.ok("DELETE", "/admin/keys/chosen");
  const again = await admin.refused(400, "POST", "/admin/keys", { id: "again", key: chosen });
  expect(again).toMatchObject({ fields: ["key"] });
  await admin.refused(400, "POST", "/admin/keys", { id: "of-file", key: FILE_KEY });
});

test("a change that was made for an older version of the key is refused with both versions", async () => {
  await using gateway = await start();
  const admin = new AdminClient(gateway);
  await make(admin, { id: "a" });
  await admin.ok("PUT", "/admin/keys/a", { user_id: "u" });
  for (const method of ["PUT", "DELETE"]) {
    const body = method === "PUT" ? { user_id: "v" } : undefined;
    await admin.refused(409, method, "/admin/keys/a", body, { headers: { "If-Match": '"1"' } });
  }
  const changed = await admin.send("PUT", "/admin/keys/a", { body: { user_id: "w", version: 2 } });
  expect([changed.status, changed.headers.get("etag")]).toEqual([200, '"3"']);
});

test("the list is searched, and read page by page: keys of the configuration first", async () => {
  const keys = ["f1", "f2"].map((id) => ({ key: `sekret-of-${id}`, id }));
  await using gateway = await start({}, { api_keys: { keys } });
  const admin = new AdminClient(gateway);
  for (const id of ["b", "a", "c:x"]) await make(admin, { id, user_id: id === "b" ? "Zoe" : undefined });
  for (const limit of [1, 2, 3, 10]) {
    const ids: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const query: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const page = (await admin.get(`/admin/keys?limit=${limit}${query}`)) as {
        keys: { id: string }[];
        total: number;
        next_cursor: string | null;
      };
      expect([page.total, page.keys.length <= limit]).toEqual([5, true]);
      ids.push(...page.keys.map(({ id }) => id));
      cursor = page.next_cursor;
    }
    expect([limit, ids]).toEqual([limit, ["f1", "f2", "a", "b", "c:x"]]);
  }
  const found = (await admin.get("/admin/keys?search=zOe")) as { keys: { id: string }[]; total: number };
  expect([found.keys.map(({ id }) => id), found.total]).toEqual([["b"], 1]);
  await admin.refused(400, "GET", "/admin/keys?cursor=x");
  await admin.refused(400, "GET", "/admin/keys?limit=0");
});

test("every worker knows a key, and that it is gone, when the answer to the change is there", async () => {
  await using gateway = await startGatewayProcess({ config: configOf({ server: { workers: 3 } }) });
  const admin = new AdminClient(gateway);
  for (let turn = 0; turn < 5; turn++) {
    const secret = await make(admin, { id: `k${turn}`, budget: { requests: 20, window: "day" } });
    const asked = await Promise.all(Array.from({ length: 12 }, () => statusOf(gateway, secret)));
    expect(new Set(asked)).toEqual(new Set([200]));
    await admin.ok("PUT", `/admin/keys/k${turn}`, { budget: { requests: 12, window: "day" } });
    expect(await statusOf(gateway, secret)).toBe(429);
    await admin.ok("DELETE", `/admin/keys/k${turn}`);
    const after = await Promise.all(Array.from({ length: 12 }, () => statusOf(gateway, secret)));
    expect(new Set(after)).toEqual(new Set([401]));
  }
});

test("keys survive kill -9 from the answer on", async () => {
  await using gateway = await startGatewayProcess({ config: configOf() });
  const secret = await make(new AdminClient(gateway), { id: "a" });
  await gateway.stop("SIGKILL");
  await gateway.restart();
  expect(await statusOf(gateway, secret)).toBe(200);
});

test("without a data folder that can be written no key is made, and those of the file work", async () => {
  await using gateway = await start({ files: { blocked: "" } }, { server: { data_dir: "./blocked" } });
  const admin = new AdminClient(gateway);
  await admin.refused(503, "POST", "/admin/keys", { id: "a" });
  expect(await statusOf(gateway, FILE_KEY)).toBe(200);
});

test("keys that an earlier release kept in the configuration move into the store once, with both secrets of a rotation", async () => {
  await using gateway = await start();
  const admin = new AdminClient(gateway);
  const [old, next] = ["sekret-before-rotation", "sekret-after-rotation"];
  const previous = { key: old, expires_at: new Date(Date.now() + 3_600_000).toISOString() };
  const keys = [
    { key: FILE_KEY, id: "file" },
    { key: next, id: "of-api", rate_limit: 100, previous },
    { key: "sekret-without-id" },
  ];
  await admin.ok("PATCH", "/admin/config/api_keys", { keys });
  const before = (await admin.get("/admin/keys")) as { keys: { id: string }[] };
  await gateway.stop();
  for (const name of ["keys.db", "keys.db-wal", "keys.db-shm"])
    rmSync(join(gateway.folder, "data", name), { force: true });
  for (let turn = 0; turn < 2; turn++) {
    await gateway.restart();
    const again = new AdminClient(gateway);
    const { keys: shown } = (await again.get("/admin/keys")) as { keys: { id: string; source: string }[] };
    expect(shown.map(({ id }) => id).sort()).toEqual(before.keys.map(({ id }) => id).sort());
    expect(shown.filter(({ source }) => source === "configuration").map(({ id }) => id)).toEqual(["file"]);
    expect(await again.get("/admin/keys/of-api")).toMatchObject({
      rate_limit: 100,
      previous_until: previous.expires_at,
    });
    for (const key of [old, next, "sekret-without-id", FILE_KEY]) expect(await statusOf(gateway, key)).toBe(200);
  }
});

test("a move that a crash has cut off within a key goes on at the next start", async () => {
  await using gateway = await start();
  const admin = new AdminClient(gateway);
  const [old, next] = ["sekret-before-rotation", "sekret-after-rotation"];
  const previous = { key: old, expires_at: new Date(Date.now() + 3_600_000).toISOString() };
  await admin.ok("PATCH", "/admin/config/api_keys", {
    keys: [
      { key: FILE_KEY, id: "file" },
      { key: next, id: "of-api", previous },
    ],
  });
  await gateway.stop();
  const folder = join(gateway.folder, "data");
  for (const name of ["keys.db", "keys.db-wal", "keys.db-shm"]) rmSync(join(folder, name), { force: true });
  const log = { error() {} };
  const store = openKeyStore({ folder, clock: systemClock, log }, true);
  store.add("of-api", {}, old);
  store.close();
  await gateway.restart();
  for (const key of [old, next, FILE_KEY]) expect(await statusOf(gateway, key)).toBe(200);
  const again = new AdminClient(gateway);
  expect(await again.get("/admin/keys/of-api")).toMatchObject({ source: "key_store" });

  await again.ok("DELETE", "/admin/keys/of-api");
  await again.ok("POST", "/admin/config/rollback/2");
  for (const key of [old, next]) expect(await statusOf(gateway, key)).toBe(401);
});

test("a store that another process writes to is read from the start on", async () => {
  await using gateway = await start();
  const secret = await make(new AdminClient(gateway), { id: "a" });
  await gateway.stop();
  using other = new Database(join(gateway.folder, "data", "keys.db"), { readwrite: true });
  other.run("BEGIN IMMEDIATE");
  await gateway.restart();
  expect(await statusOf(gateway, secret)).toBe(200);
  await new AdminClient(gateway).refused(503, "PUT", "/admin/keys/a", { user_id: "u" });
  other.run("ROLLBACK");
  await new AdminClient(gateway).ok("PUT", "/admin/keys/a", { user_id: "u" });
});

test("while the store is damaged its keys get 503, because they are not known to be wrong", async () => {
  await using gateway = await start();
  const secret = await make(new AdminClient(gateway), { id: "a" });
  await gateway.stop();
  for (const name of ["keys.db-wal", "keys.db-shm"]) rmSync(join(gateway.folder, "data", name), { force: true });
  writeFileSync(join(gateway.folder, "data", "keys.db"), "no database ".repeat(1000));
  await gateway.restart();
  const refused = await expectError(await gateway.chat({ model: "m" }, as(secret)), 503);
  expect(refused.message).toContain("API keys cannot be looked up");
  const health = await new AdminClient(gateway).get("/admin/health");
  expect(JSON.stringify(health)).toContain("keys.db cannot be used: the file is no database");
  expect(await statusOf(gateway, FILE_KEY)).toBe(200);
  expect((await gateway.chat({ model: "m" })).status).toBe(401);
});

test("ids that no path can name, and names of other budgets, are no ids of keys", async () => {
  await using gateway = await start();
  const admin = new AdminClient(gateway);
  for (const id of ["..", "a/../b", "line\nbreak", "k".repeat(257), "x:tokens"]) {
    expect((await admin.refused(400, "POST", "/admin/keys", { id })).fields).toEqual(["id"]);
  }
  for (const id of ["k".repeat(256), "a/b", "ä ö", "a#b?c%2f", "__proto__"]) {
    await make(admin, { id });
    await admin.ok("DELETE", `/admin/keys/${encodeURIComponent(id)}`);
  }
});

test("the size of a key is bounded", async () => {
  await using gateway = await start();
  const admin = new AdminClient(gateway);
  await make(admin, { id: "a" });
  const cases = {
    user_id: "u".repeat(1_025),
    organization_id: "o".repeat(1_025),
    models: Array.from({ length: 5_000 }, (_, index) => `model-${index}`),
  };
  for (const [field, value] of Object.entries(cases)) {
    expect((await admin.refused(400, "POST", "/admin/keys", { [field]: value })).fields).toEqual([field]);
    expect((await admin.refused(400, "PUT", "/admin/keys/a", { [field]: value })).fields).toEqual([field]);
  }
  await make(admin, { id: "b", user_id: "u".repeat(1_024), models: cases.models.slice(0, 2_000) });
});

test("what is no secret by its looks is none: a mask, a variable, another type", async () => {
  await using gateway = await start();
  const admin = new AdminClient(gateway);
  await make(admin, { id: "a" });
  for (const key of ["********", "${TEAM_KEY}", 12_345_678]) {
    expect((await admin.refused(400, "POST", "/admin/keys", { key })).fields).toEqual(["key"]);
    expect((await admin.refused(400, "POST", "/admin/keys/a/rotate", { key })).fields).toEqual(["key"]);
  }
});

test("a key without an id never takes the place of one with the name that its secret makes", async () => {
  await using gateway = await start();
  const admin = new AdminClient(gateway);
  const key = "sekret-without-an-id";
  const { id } = (await admin.ok("POST", "/admin/keys?dry_run=true", { key })).key as { id: string };
  const secret = await make(admin, { id, models: ["m"] });
  await admin.refused(409, "POST", "/admin/keys", { key });
  expect([await statusOf(gateway, secret), await statusOf(gateway, key)]).toEqual([200, 401]);
});

test("a store that breaks while the gateway runs is told as that, and ends nothing else", async () => {
  const config = configOf({
    notifications: [{ name: "ops", url: "http://127.0.0.1:9999/", allow_private: true, events: ["key_expiring"] }],
  });
  await using gateway = await startGatewayProcess({ config });
  const admin = new AdminClient(gateway);
  const secret = await make(admin, { id: "a", budget: { requests: 5, window: "day" } });
  expect(await statusOf(gateway, secret)).toBe(200);
  using other = new Database(join(gateway.folder, "data", "keys.db"), { readwrite: true });
  other.run("DROP TABLE keys");
  for (const path of ["/admin/keys", "/admin/organizations", "/admin/budgets"]) {
    expect((await admin.refused(503, "GET", path)).message).toContain("API keys cannot be looked up");
  }
  // Ends of keys are looked up again after each change.
  const rules = [{ id: "all", limit: { requests: 3 }, window: "day" }];
  expect((await admin.ok("PATCH", "/admin/config/budgets", { rules })).warnings).toEqual([]);
  await waitFor("the ends of keys are looked up", () =>
    gateway.printed.stderr.includes("ends of keys cannot be looked up"),
  );
  const states: number[] = [];
  for (const key of [secret, FILE_KEY, FILE_KEY, FILE_KEY, FILE_KEY]) states.push(await statusOf(gateway, key));
  expect(states).toEqual([503, 200, 200, 200, 429]);
});
