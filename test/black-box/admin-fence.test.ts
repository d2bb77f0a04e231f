// What the admin API may not bring in: variables of the environment, foreign paths, and new places for secrets.

import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import { createAuthority } from "../support/certificates.ts";
import { chat } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

const ENVIRONMENT = { KEY_OF_B: "sekret-b-key", FOREIGN: "sekret-foreign", LEVEL: "info" };

function configOf(url: string): ConfigDocument {
  return {
    backends: [
      { name: "a", type: "vllm", url, models: ["m"], api_key: "sekret-a-key", headers: { "X-Team": "sekret-team" } },
      { name: "b", type: "vllm", url: `${url}/v1`, models: ["n"], api_key: "${KEY_OF_B}" },
      { name: "c", type: "vllm", url: "http://user:sekret-password@127.0.0.1:9", models: ["o"] },
    ],
    api_keys: { keys: [{ key: "${KEY_OF_B}", id: "tenant" }] },
    web_search: { provider: "serper", api_key: "sekret-search", base_url: url },
    telemetry: {
      otlp: { endpoint: `${url}/otlp`, headers: { "X-Key": "sekret-otlp" }, sampling_ratio: 0, interval: "60s" },
    },
    logging: { level: "${LEVEL}" as "info" },
  };
}

async function start(more: ConfigDocument = {}, environment: Record<string, string> = {}) {
  const backend = bed.backend({ answer: chat("x"), models: ["m"] });
  const evil = bed.backend({ answer: chat("x"), models: ["m"] });
  const gateway = await bed.gateway({
    config: { ...configOf(backend.url), ...more },
    environment: { ...ENVIRONMENT, ...environment },
    files: { "prompts/a.md": "Prompt.", "keys.yaml": "keys: []", "other.json": '{"mine": true}' },
    awaitHealth: false,
  });
  return { backend, evil, gateway, admin: new AdminClient(gateway) };
}

type Started = Awaited<ReturnType<typeof start>>;

/** Every door through which a section can be changed: each has to refuse it, and to name the field. */
/** Fields that belong to one server: an import leaves them out, whatever it says. */
const OF_SERVER = [
  "global_prompts.prompts_dir",
  "api_keys.api_keys_file",
  "model_metadata.file",
  "admin.stats.persistence.path",
  "metrics.persistence.path",
  "files.path",
  "server.bind_address",
];

async function everyDoorRefuses({ admin }: Started, section: string, value: object, field: string): Promise<void> {
  const version = await admin.version();
  const content = JSON.stringify({ [section]: value });
  const doors: [number, string, string, unknown][] = [
    [400, "PUT", `/admin/config/${section}`, value],
    [400, "PATCH", `/admin/config/${section}`, value],
    [400, "PUT", `/admin/config/${section}?dry_run=true`, value],
    [400, "PATCH", `/admin/config/${section}?apply=false`, value],
  ];
  const isOfServer = OF_SERVER.some((name) => field.startsWith(name));
  if (!isOfServer) {
    doors.push([422, "POST", "/admin/config/import", { format: "json", content }]);
    doors.push([422, "POST", "/admin/config/import", { format: "yaml", content, merge: true }]);
    doors.push([422, "POST", "/admin/config/import", { format: "json", content, apply: false }]);
  }
  for (const [status, method, path, body] of doors) {
    const { fields } = await admin.refused(status, method, path, body);
    if (!fields.includes(field)) throw new Error(`${method} ${path} names ${fields}, not ${field}`);
  }
  const refused = { valid: false, errors: expect.arrayContaining([expect.objectContaining({ field })]) };
  expect(await admin.ok("POST", "/admin/config/validate", { section, config: value })).toMatchObject(refused);
  const preview = await admin.ok("POST", "/admin/config/import", {
    format: "json",
    content,
    merge: true,
    dry_run: true,
  });
  if (isOfServer) {
    const warning = expect.stringContaining("is left out of the import, and stays as it is here");
    expect(preview).toMatchObject({ valid: true, changes_preview: {}, warnings: expect.arrayContaining([warning]) });
  } else expect(preview).toMatchObject(refused);
  expect(await admin.get("/admin/config/staged")).toMatchObject({ total: 0 });
  expect(await admin.version()).toBe(version);
}

describe("variables of the environment", () => {
  test.each<[section: string, value: object, field: string]>([
    ["backends", [{ name: "x", url: "http://127.0.0.1:9", api_key: "${FOREIGN}" }], "backends[0].api_key"],
    ["backends", [{ name: "x", url: "http://127.0.0.1:9/${FOREIGN}" }], "backends[0].url"],
    ["backends", [{ name: "x", url: "http://127.0.0.1:9", api_key: "${KEY_OF_B}" }], "backends[0].api_key"],
    ["global_prompts", { default: "Say ${FOREIGN:-nothing}" }, "global_prompts.default"],
    ["model_aliases", { "gpt-*": "${NOT_EVEN_SET}" }, 'model_aliases["gpt-*"]'],
    ["api_keys", { keys: [{ id: "${FOREIGN}", key: "sekret-key-1" }] }, "api_keys.keys[0].id"],
    ["tracing", { headers: { trace_id: "${KEY_OF_B}" } }, "tracing.headers.trace_id"],
  ])("a new one in %s is refused: %j", async (section, value, field) => {
    await everyDoorRefuses(await started, section, value, field);
  });

  test("in a new backend is told once, as what it is", async () => {
    const { admin } = await start();
    const added = { name: "d", url: "http://127.0.0.1:9", api_key: "${FOREIGN}" };
    const { message, fields } = await admin.refused(400, "POST", "/admin/backends", added);
    expect(fields).toEqual(["api_key"]);
    expect(message).toStartWith("api_key: names a variable");
  });

  test("whether a variable exists is not told", async () => {
    const { admin } = await started;
    for (const name of ["FOREIGN", "NOT_EVEN_SET"]) {
      const error = await admin.refused(400, "PUT", "/admin/config/global_prompts", { default: `\${${name}}` });
      expect(error.message).not.toContain("not set");
    }
  });

  test("those that stand there stay, in every form of the section; a literal ${ is none", async () => {
    const { admin } = await start();
    const backends = ((await admin.get("/admin/config/backends")).config as object[]).toReversed();
    await admin.ok("PUT", "/admin/config/backends", backends);
    await admin.ok("PATCH", "/admin/config/logging", { access_log: false });
    await admin.ok("PATCH", "/admin/config/api_keys", { keys: [{ key: "${KEY_OF_B}", id: "tenant", user_id: "u" }] });
    const { content } = await admin.ok("POST", "/admin/config/export", { format: "yaml" });
    await admin.ok("POST", "/admin/config/import", { format: "yaml", content });
    await admin.ok("PUT", "/admin/config/global_prompts", { default: "A literal $${NAME}." });
    // What ran before may run again.
    await admin.ok("PUT", "/admin/config/backends", []);
    await admin.ok("POST", "/admin/config/rollback/1", {});
  });
});

describe("secrets stay with the place that they were given for", () => {
  test.each<[what: string, change: (backend: Record<string, unknown>, evil: string) => object, field: string]>([
    ["masked, at a new url", (entry, url) => ({ ...entry, url }), "api_key"],
    ["masked, of another type", (entry) => ({ ...entry, type: "anthropic" }), "api_key"],
    ["only a header masked", (entry, url) => ({ ...entry, url, api_key: "sekret-new-key" }), "headers.X-Team"],
  ])("%s", async (_what, change, field) => {
    const at = await started;
    const [a, b, c] = (await at.admin.get("/admin/config/backends")).config as Record<string, unknown>[];
    const changed = change(a as Record<string, unknown>, at.evil.url);
    await everyDoorRefuses(at, "backends", [changed, b, c], `backends[0].${field}`);
  });

  test("a reference to a variable, and the password in a url", async () => {
    const at = await started;
    const [a, b, c] = (await at.admin.get("/admin/config/backends")).config as Record<string, unknown>[];
    await everyDoorRefuses(at, "backends", [a, { ...b, url: at.evil.url }, c], "backends[1].api_key");
    const url = "http://********@example.com";
    await everyDoorRefuses(at, "backends", [a, b, { ...c, url }], "backends[2].url");
  });

  test("a server that another authority answers for, or that has another name", async () => {
    const tls = { server_name: "engine.internal" };
    const backend = { name: "t", url: "https://127.0.0.1:9", models: ["t"], api_key: "sekret-t-key", tls };
    const at = await start({ backends: [backend] });
    const [entry] = (await at.admin.get("/admin/config/backends")).config as Record<string, unknown>[];
    const { root } = createAuthority();
    for (const changed of [{ ca: root }, { server_name: "other.internal" }, { ...tls, ca: root }, undefined]) {
      await everyDoorRefuses(at, "backends", [{ ...entry, tls: changed }], "backends[0].api_key");
    }
    await at.admin.ok("PUT", "/admin/backends/t", { weight: 2, tls });
    await at.admin.ok("PUT", "/admin/backends/t", { tls: { ca: root }, api_key: "sekret-t-key" });
  });

  test("a receiver of traces", async () => {
    const at = await started;
    const { config } = (await at.admin.get("/admin/config/telemetry")) as { config: { otlp: object } };
    const moved = { otlp: { ...config.otlp, endpoint: at.evil.url } };
    await everyDoorRefuses(at, "telemetry", moved, "telemetry.otlp.headers.X-Key");
    const patch = { otlp: { endpoint: at.evil.url } };
    const { fields } = await at.admin.refused(400, "PATCH", "/admin/config/telemetry", patch);
    expect(fields).toEqual(["telemetry.otlp.headers.X-Key"]);
  });

  test("a search service", async () => {
    const at = await started;
    const { config } = await at.admin.get("/admin/config/web_search");
    await everyDoorRefuses(at, "web_search", { ...(config as object), base_url: at.evil.url }, "web_search.api_key");
    await everyDoorRefuses(at, "web_search", { ...(config as object), provider: "exa" }, "web_search.api_key");
    // A patch that leaves the secret out keeps it too.
    const { fields } = await at.admin.refused(400, "PATCH", "/admin/config/web_search", { base_url: at.evil.url });
    expect(fields).toEqual(["web_search.api_key"]);
  });

  test("one backend: the url needs the secrets with it, and then it changes", async () => {
    const { admin, evil, gateway } = await start();
    const error = await admin.refused(400, "PUT", "/admin/backends/a", { url: evil.url });
    expect(error.fields).toEqual(["api_key", "headers.X-Team"]);
    expect(error.message).toContain("give the secret itself");
    await admin.refused(400, "PUT", "/admin/backends/a", { url: evil.url, api_key: "********" });
    await admin.refused(400, "PUT", "/admin/backends/b", { url: evil.url });
    expect(evil.connectionsOpened).toBe(0);
    await admin.ok("PUT", "/admin/backends/a", { weight: 3 });
    await admin.ok("PUT", "/admin/backends/a", {
      url: evil.url,
      api_key: "sekret-a-key",
      headers: { "X-Team": null },
    });
    await (await gateway.chat()).text();
    expect(evil.lastRequest.headers.authorization).toBe("Bearer sekret-a-key");
  });

  test("one backend: other credentials in its url are no other place, and what only looks so is", async () => {
    const { admin, evil, backend } = await start();
    for (const end of ["/", "\\", "?", "#"]) {
      const { fields } = await admin.refused(400, "PUT", "/admin/backends/a", {
        url: backend.url.replace("//", `//${new URL(evil.url).host}${end}@`),
      });
      expect(fields.length).toBeGreaterThan(0);
    }
    await admin.ok("PUT", "/admin/backends/a", { url: backend.url.replace("//", "//user:sekret-password@") });
    expect(evil.connectionsOpened).toBe(0);
  });

  test("secrets that the environment gives to a place in the list", async () => {
    const { admin, evil } = await start(
      {},
      { SIGNALBOX_BACKENDS__0__API_KEY: "sekret-override", SIGNALBOX_WEB_SEARCH__API_KEY: "sekret-override" },
    );
    const whole = { url: evil.url, api_key: "sekret-mine", headers: null };
    expect((await admin.refused(400, "PUT", "/admin/backends/a", whole)).fields).toEqual(["url"]);
    expect((await admin.refused(400, "DELETE", "/admin/backends/a")).fields).toEqual(["backends[0].url"]);
    const search = { provider: "serper", api_key: "sekret-mine", base_url: evil.url };
    await admin.refused(400, "PUT", "/admin/config/web_search", search);
    expect(evil.connectionsOpened).toBe(0);
  });

  test("an authenticated administrator, too, gives them again; with them, the change is made", async () => {
    const { evil, gateway } = await start({ admin: { auth: { method: "bearer_token", token: "sekret-token" } } });
    const admin = new AdminClient(gateway, { Authorization: "Bearer sekret-token" });
    for (const change of [{ url: evil.url }, { type: "generic", url: evil.url }]) {
      const { fields } = await admin.refused(400, "PUT", "/admin/backends/a", change);
      expect(fields).toContain("api_key");
    }
    const given = { url: evil.url, api_key: "sekret-given", headers: { "X-Team": "sekret-team" } };
    await admin.ok("PUT", "/admin/backends/a", given);
    await admin.refused(400, "PUT", "/admin/backends/a", { api_key: "${FOREIGN}" });
    await admin.refused(400, "PUT", "/admin/config/global_prompts", { prompts_dir: "/proc/self" });
    await (await gateway.chat()).text();
    expect(evil.lastRequest.headers.authorization).toBe("Bearer sekret-given");
  });
});

describe("without credentials nobody makes themselves an administrator", () => {
  test.each<[section: string, value: object, field: string]>([
    ["admin", { auth: { method: "bearer_token", token: "sekret-mine" } }, "admin.auth"],
    ["admin", { auth: { token: "sekret-for-later" } }, "admin.auth"],
    ["admin", { auth: { method: "api_key", token: "sekret-mine" } }, "admin.auth"],
    ["api_keys", { keys: [{ key: "sekret-mine", id: "mine", scopes: ["admin"] }] }, "api_keys.keys[0].scopes"],
  ])("%s %j", async (section, value, field) => {
    await everyDoorRefuses(await started, section, value, field);
  });

  test("a key that is an administrator's stays as it is; others are made and changed", async () => {
    const { admin } = await start({ api_keys: { keys: [{ key: "sekret-operator", id: "op", scopes: ["admin"] }] } });
    await admin.refused(400, "POST", "/admin/keys/op/rotate", {});
    await admin.refused(400, "POST", "/admin/keys", { id: "mine", scopes: ["read", "admin"] });
    await admin.ok("POST", "/admin/keys", { id: "tenant" });
    await admin.refused(400, "PUT", "/admin/keys/tenant", { scopes: ["admin"] });
    await admin.ok("POST", "/admin/keys/tenant/rotate", {});
    await admin.ok("DELETE", "/admin/keys/op");
    await admin.ok("POST", "/admin/config/rollback/1", {});
  });
});

describe("paths", () => {
  test.each<[section: string, value: object, field: string]>([
    ["global_prompts", { prompts_dir: "/proc/self" }, "global_prompts.prompts_dir"],
    ["global_prompts", { prompts_dir: ".." }, "global_prompts.prompts_dir"],
    ["global_prompts", { prompts_dir: "link" }, "global_prompts.prompts_dir"],
    ["global_prompts", { prompts_dir: "link/new" }, "global_prompts.prompts_dir"],
    ["global_prompts", { prompts_dir: ".", default_file: "gateway.yaml" }, "global_prompts.default_file"],
    ["global_prompts", { models: { m: { prompt_file: ".secret.md" } } }, "global_prompts.models.m.prompt_file"],
    ["api_keys", { api_keys_file: "/etc/passwd" }, "api_keys.api_keys_file"],
    ["api_keys", { api_keys_file: "prompts/a.md" }, "api_keys.api_keys_file"],
    ["api_keys", { api_keys_file: "/etc/keys.yaml" }, "api_keys.api_keys_file"],
    ["model_metadata", { file: "../facts.yaml" }, "model_metadata.file"],
    ["admin", { stats: { persistence: { path: "/tmp/stats.json" } } }, "admin.stats.persistence.path"],
    ["admin", { stats: { persistence: { path: "other.json" } } }, "admin.stats.persistence.path"],
    ["admin", { stats: { persistence: { path: "./data/config.db" } } }, "admin.stats.persistence.path"],
    ["admin", { stats: { persistence: { path: "./data/../gateway.json" } } }, "admin.stats.persistence.path"],
    ["metrics", { persistence: { path: "gateway.db" } }, "metrics.persistence.path"],
    ["metrics", { persistence: { path: "./data/config.db" } }, "metrics.persistence.path"],
    ["metrics", { persistence: { path: "./data/sub/../config.db" } }, "metrics.persistence.path"],
    ["files", { path: "/tmp/files" }, "files.path"],
    ["files", { path: "prompts" }, "files.path"],
    ["files", { path: "./data/../prompts" }, "files.path"],
    ["server", { bind_address: "unix:/tmp/x.sock" }, "server.bind_address"],
    ["server", { bind_address: ["127.0.0.1:1", "unix:../x.sock"] }, "server.bind_address[1]"],
    ["backends", [{ name: "d", url: "https://10.0.0.1", tls: { ca: "/etc/ssl/cert.pem" } }], "backends[0].tls.ca"],
    ["backends", [{ name: "d", url: "https://10.0.0.1", tls: { ca: "link/x.pem" } }], "backends[0].tls.ca"],
    ["backends", [{ name: "d", url: "https://10.0.0.1", tls: { ca: "keys.yaml" } }], "backends[0].tls.ca"],
    ["backends", [{ name: "d", url: "unix:/var/run/docker.sock" }], "backends[0].url"],
    ["backends", [{ name: "d", url: "unix:/../var/run/docker.sock" }], "backends[0].url"],
    ["response_cache", { redis: { url: "unix:/var/run/docker.sock?db=1" } }, "response_cache.redis.url"],
    ["rate_limiting", { redis: { url: "redis+unix://:x@/var/run/docker.sock" } }, "rate_limiting.redis.url"],
  ])("%s %j", async (section, value, field) => {
    const at = await started;
    linkOut(at.gateway.folder);
    await everyDoorRefuses(at, section, value, field);
  });

  test("inside the gateway's own folders they may be anything, and those of the file stay", async () => {
    const outside = { prompts_dir: "/etc", merge_strategy: "append" as const };
    const { admin, gateway } = await start({ global_prompts: outside });
    mkdirSync(join(gateway.folder, "data/more"), { recursive: true });
    await admin.ok("PATCH", "/admin/config/global_prompts", { separator: "\n" });
    await admin.ok("PUT", "/admin/config/global_prompts", { ...outside, separator: "\n\n" });
    await admin.ok("PUT", "/admin/config/global_prompts", { prompts_dir: "prompts", default_file: "a.md" });
    await admin.ok("PUT", "/admin/config/global_prompts", { prompts_dir: "./data/more" });
    await admin.ok("PATCH", "/admin/config/api_keys", { api_keys_file: "keys.yaml" });
    await admin.ok("PATCH", "/admin/config/admin", { stats: { persistence: { path: "./data/more/s.json" } } });
    await admin.ok("PATCH", "/admin/config/metrics", { persistence: { path: join(gateway.folder, "data/m.db") } });
    await admin.ok("PATCH", "/admin/config/files", { path: "./data/uploads" });
    await admin.ok("POST", "/admin/backends", { name: "s", url: `unix:${gateway.folder}/engine.sock` });
    const { root } = createAuthority();
    writeFileSync(join(gateway.folder, "authority.pem"), root);
    for (const [name, ca] of Object.entries({ file: "authority.pem", text: root })) {
      await admin.ok("POST", "/admin/backends", { name, url: "https://127.0.0.1:9", models: ["t"], tls: { ca } });
      expect(await admin.get(`/admin/backends/${name}`)).toMatchObject({ tls: { ca } });
    }
  });

  test("of the file: what is there already is kept under another name", async () => {
    const { gateway } = await start({ admin: { stats: { persistence: { path: "other.json" } } } });
    await gateway.stop();
    expect(readFileSync(join(gateway.folder, "other.json.unreadable-1"), "utf8")).toBe('{"mine": true}');
    expect(gateway.printed.stderr).toContain("other.json");
  });
});

function linkOut(folder: string): void {
  try {
    symlinkSync("/proc/self", join(folder, "link"));
  } catch {
    // made by the test before
  }
  writeFileSync(join(folder, "prompts", ".secret.md"), "Hidden.");
}

const started = start();
