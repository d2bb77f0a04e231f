// The configuration through the admin API: what it shows, and changes at once or staged.

import { describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import { workerCount } from "../support/gateway-parts.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

const SECTIONS = [
  "server",
  "backends",
  "logging",
  "rate_limiting",
  "circuit_breaker",
  "retry",
  "timeouts",
  "health_checks",
  "global_prompts",
  "fallback",
  "files",
  "api_keys",
  "metrics",
  "admin",
  "routing",
];

/** A secret wherever one may stand. */
const CONFIG: ConfigDocument = {
  backends: [
    {
      name: "a",
      type: "demo",
      models: ["m"],
      api_key: "sekret-of-a",
      headers: { "X-Team": "sekret-header" },
    },
    { name: "b", url: "http://user:sekret@127.0.0.1:9", models: ["n"] },
  ],
  api_keys: { keys: [{ id: "k", key: "sekret-key-1" }] },
  rate_limiting: { bypass_keys: ["sekret-bypass"] },
  metrics: { auth: { username: "prometheus", password: "sekret-metrics" } },
  admin: { auth: { token: "sekret-token", username: "u", password: "sekret-password" } },
  web_search: { api_key: "sekret-search" },
  telemetry: { otlp: { headers: { Authorization: "Bearer sekret-otlp" } } },
};

async function start(config: ConfigDocument = CONFIG) {
  const gateway = await bed.gateway({ config, awaitHealth: false });
  return { gateway, admin: new AdminClient(gateway) };
}

describe("queries", () => {
  const started = start();

  test("GET /admin/config sums up", async () => {
    const { admin } = await started;
    expect(await admin.get("/admin/config")).toMatchObject({
      server: { bind_address: "127.0.0.1:0", workers: workerCount(), connection_pool_size: 100 },
      backends: { count: 2, names: ["a", "b"] },
      health_checks: { enabled: true, interval: "30s" },
      rate_limiting: { enabled: false },
      circuit_breaker: { enabled: false },
      selection_strategy: "RoundRobin",
      hot_reload: { available: true, note: expect.any(String) },
      version: 1,
      pending_sections: [],
      pending_restart: [],
    });
  });

  test("GET /admin/config/full shows everything with defaults, and secrets masked", async () => {
    const { admin } = await started;
    const { status, headers, body } = await admin.send("GET", "/admin/config/full");
    expect(status).toBe(200);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("etag")).toBe('"1"');
    expect(body).toMatchObject({
      hot_reload_enabled: true,
      last_modified: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      config: {
        backends: [{ name: "a", api_key: "********", weight: 1, enabled: true }, { name: "b" }],
        retry: { max_attempts: 3, base_delay: "100ms" },
        logging: { level: "info" },
      },
    });
  });

  test("GET /admin/config/sections lists exactly 15, and the others apart", async () => {
    const { admin } = await started;
    const { sections, total, extensions } = await admin.get("/admin/config/sections");
    const names = (list: unknown) => (list as { name: string }[]).map(({ name }) => name);
    expect(total).toBe(15);
    expect(names(sections).sort()).toEqual([...SECTIONS].sort());
    expect(names(extensions)).toContain("response_cache");
    for (const listed of [...(sections as object[]), ...(extensions as object[])]) {
      expect(listed).toEqual({
        name: expect.any(String),
        description: expect.any(String),
        hot_reload_capability: expect.stringMatching(/^(immediate|gradual|requires_restart)$/),
      });
    }
  });

  test.each([...SECTIONS, "response_cache", "model_aliases"])("GET /admin/config/%s", async (name) => {
    const { admin } = await started;
    const body = await admin.get(`/admin/config/${name}`);
    expect(body).toMatchObject({
      section: name,
      hot_reload_capability: expect.any(String),
      description: expect.any(String),
    });
    expect(Array.isArray(body.config)).toBe(name === "backends");
  });

  test("an unknown section is 404 and names those that there are", async () => {
    const { admin } = await started;
    for (const path of ["/admin/config/retyr", "/admin/config/schema?section=retyr", "/admin/config/__proto__"]) {
      const error = await admin.refused(404, "GET", path);
      expect(error).toMatchObject({ type: "not_found", code: 404 });
      expect(error.details?.available_sections).toEqual(expect.arrayContaining(SECTIONS));
      expect(typeof error.details?.requested_section).toBe("string");
    }
  });

  test("GET /admin/config/schema is draft-07, of everything or of a section", async () => {
    const { admin } = await started;
    const schema = await admin.get("/admin/config/schema");
    expect(schema.$schema).toBe("http://json-schema.org/draft-07/schema#");
    expect(Object.keys(schema.properties as object)).toEqual(expect.arrayContaining(SECTIONS));
    const ofSection = await admin.get("/admin/config/schema?section=backends");
    expect(ofSection).toMatchObject({
      type: "array",
      items: { properties: { weight: { minimum: 0, maximum: 100, default: 1 }, name: { minLength: 1 } } },
    });
  });

  test("GET /admin/config/hot-reload-status", async () => {
    const { gateway, admin } = await started;
    const { capabilities, ...status } = await admin.get("/admin/config/hot-reload-status");
    expect(status).toMatchObject({
      enabled: true,
      description: expect.any(String),
      file: { path: gateway.configPath, failures: 0 },
      last_error: null,
      pending_restart: [],
    });
    const items = (name: string) =>
      (capabilities as Record<string, { description: string; items: string[] }>)[name]?.items;
    expect(items("immediate_update")).toEqual(expect.arrayContaining(["logging.level", "rate_limiting.*"]));
    expect(items("gradual_update")).toContain("backends.*");
    expect(items("requires_restart")).toEqual(expect.arrayContaining(["server.bind_address", "server.workers"]));
  });

  test("secrets are shown to nobody without authentication", async () => {
    const { admin } = await started;
    for (const path of ["/admin/config/full", "/admin/config/api_keys"]) {
      expect(await admin.refused(403, "GET", `${path}?include_sensitive=true`)).toMatchObject({
        param: "include_sensitive",
      });
    }
    const { param } = await admin.refused(400, "GET", "/admin/config/full?include_sensitive=maybe");
    expect(param).toBe("include_sensitive");
  });
});

describe("PUT and PATCH", () => {
  test("PUT replaces a section, bare or wrapped", async () => {
    const { admin } = await start();
    const bare = await admin.ok("PUT", "/admin/config/retry", { max_attempts: 5 });
    expect(bare).toMatchObject({
      success: true,
      message: expect.any(String),
      section: "retry",
      version: 2,
      hot_reload_capability: "immediate",
      hot_reload_applied: true,
      applied: true,
      warnings: [],
      previous: { max_attempts: 3 },
      current: { max_attempts: 5, max_delay: "10s" },
    });
    const wrapped = await admin.ok("PUT", "/admin/config/retry", { config: { max_delay: "20s" } });
    expect(wrapped).toMatchObject({ version: 3, current: { max_attempts: 3, max_delay: "20s" } });
    expect((await admin.get("/admin/config/retry")).config).toMatchObject({ max_attempts: 3, max_delay: "20s" });
    const same = await admin.ok("PUT", "/admin/config/retry", { max_delay: "20s" });
    expect(same).toMatchObject({ success: true, version: 3, applied: false });
  });

  test("PATCH merges: scalars replaced, mappings merged, lists replaced, null removes", async () => {
    const { admin } = await start();
    const first = await admin.ok("PATCH", "/admin/config/rate_limiting", {
      limits: { per_client: { requests_per_second: 7 } },
      whitelist: ["10.0.0.0/8", "192.0.2.1"],
    });
    expect(first).toMatchObject({
      version: 2,
      applied: true,
      merged_config: { limits: { per_client: { requests_per_second: 7 } } },
      current: { whitelist: ["10.0.0.0/8", "192.0.2.1"] },
      changes: { "limits.per_client.requests_per_second": { from: 10, to: 7 } },
    });
    const second = await admin.ok("PATCH", "/admin/config/rate_limiting", {
      config: { limits: { per_client: null }, whitelist: ["192.0.2.1"] },
    });
    expect(second.merged_config).toMatchObject({
      limits: { per_client: { requests_per_second: 10 } },
      whitelist: ["192.0.2.1"],
      bypass_keys: ["********"],
    });
  });

  test("what needs a restart is kept, and told", async () => {
    const { admin } = await start();
    const changed = await admin.ok("PATCH", "/admin/config/server", { bind_address: "127.0.0.1:1" });
    expect(changed).toMatchObject({
      hot_reload_capability: "requires_restart",
      hot_reload_applied: false,
      applied: true,
      warnings: expect.arrayContaining([expect.stringContaining("restart")]),
    });
    expect((await admin.get("/admin/config")).pending_restart).toEqual(["server.bind_address"]);
    const running = await admin.ok("PATCH", "/admin/config/server", { shutdown_timeout: "5s" });
    expect(running).toMatchObject({ hot_reload_capability: "gradual", hot_reload_applied: true });
  });

  test("a change is in force for the next request, and survives a restart", async () => {
    const { gateway, admin } = await start();
    expect((await gateway.chat({ model: "new" })).status).toBe(404);
    await admin.ok("PATCH", "/admin/config/backends", [{ name: "a", type: "demo", models: ["new"] }]);
    expect((await gateway.chat({ model: "new" })).status).toBe(200);
    await gateway.restart({ awaitHealth: false });
    expect(await admin.version()).toBe(2);
    expect((await admin.get("/admin/config")).backends).toEqual({ count: 1, names: ["a"] });
  });

  test("masked secrets that come back mean the ones that are there", async () => {
    const auth = { method: "bearer_token", token: "sekret-1" } as const;
    const { gateway } = await start({ ...CONFIG, admin: { auth } });
    const known = new AdminClient(gateway, { Authorization: "Bearer sekret-1" });
    for (const section of SECTIONS) {
      const { config } = await known.get(`/admin/config/${section}`);
      expect(await known.ok("PUT", `/admin/config/${section}`, { config })).toMatchObject({ applied: false });
    }
    const shown = await known.get("/admin/config/full?include_sensitive=true", { showsSecrets: true });
    expect(shown.config).toMatchObject({
      backends: [{ api_key: "sekret-of-a" }, {}],
      admin: { auth: { token: "sekret-1" } },
    });
  });

  test("invalid values and unknown fields are 400 with the field, and no version", async () => {
    const { admin } = await start();
    type Case = [method: string, section: string, body: unknown, field: string];
    const withTls = (tls: object, field: string): Case => {
      return ["PUT", "backends", [{ name: "x", url: "https://x", tls }], `backends[0].tls.${field}`];
    };
    const cases: Case[] = [
      ["PUT", "logging", { level: "loud" }, "logging.level"],
      ["PATCH", "logging", { level: "loud" }, "logging.level"],
      ["PUT", "retry", { max_attemps: 3 }, "retry.max_attemps"],
      ["PUT", "retry", [], "retry"],
      ["PUT", "retry", "x", "retry"],
      ["PUT", "retry", null, "retry"],
      ["PATCH", "retry", { config: null }, "retry"],
      ["PUT", "server", { workers: 257 }, "server.workers"],
      ["PUT", "server", { connection_pool_size: 0 }, "server.connection_pool_size"],
      ["PATCH", "server", { connection_pool_size: 10_001 }, "server.connection_pool_size"],
      ["PATCH", "server", { upstream_client: "curl" }, "server.upstream_client"],
      ["PUT", "server", { bind_address: "nowhere" }, "server.bind_address"],
      ["PATCH", "server", { data_dir: "/elsewhere" }, "server.data_dir"],
      ["PUT", "backends", [{ name: "x", url: "ftp://x" }], "backends[0].url"],
      ["PUT", "backends", [{ name: "x", url: "http://x/v1?token=sekret" }], "backends[0].url"],
      ["PUT", "backends", [{ name: "x", url: "http://x", tls: { server_name: "a.b" } }], "backends[0].tls"],
      ["PUT", "backends", [{ name: "x", type: "ollama", tls: {} }], "backends[0].tls"],
      ["PUT", "backends", [{ name: "x", type: "demo", tls: {} }], "backends[0].tls"],
      withTls({ server_name: "10.0.0.1" }, "server_name"),
      withTls({ server_name: "a b" }, "server_name"),
      withTls({ server_name: "a.b." }, "server_name"),
      withTls({ ca: "" }, "ca"),
      withTls({ ca: "away.pem" }, "ca"),
      withTls({ ca: "-----BEGIN CERTIFICATE-----" }, "ca"),
      withTls({ insecure: true }, "insecure"),
      ["PUT", "backends", [{ name: "x", type: "demo", weight: 101 }], "backends[0].weight"],
      [
        "PUT",
        "backends",
        [
          { name: "x", type: "demo" },
          { name: "x", type: "demo" },
        ],
        "backends[1].name",
      ],
      ["PUT", "metrics", { auth: { enabled: true, username: "u" } }, "metrics.auth.password"],
      ["PATCH", "circuit_breaker", { backends: { nobody: {} } }, "circuit_breaker.backends.nobody"],
      ["PUT", "api_keys", { keys: [{ key: "********" }] }, "api_keys.keys[0].key"],
      ["PATCH", "retry", { max_attempts: 4, version: "one" }, "version"],
    ];
    for (const [method, section, body, field] of cases) {
      const sent = typeof body === "string" ? JSON.stringify(body) : body;
      const error = await admin.refused(400, method, `/admin/config/${section}`, sent === null ? "null" : sent);
      expect(error).toMatchObject({ type: "validation_error", code: 400 });
      expect(error.fields).toContain(field);
    }
    await admin.refused(404, "PUT", "/admin/config/nothing", {});
    await admin.refused(404, "PATCH", "/admin/config/nothing", {});
    await admin.refused(405, "DELETE", "/admin/config/retry");
    expect(await admin.version()).toBe(1);
  });

  test("a change for a version that is not the current one is 409 with both versions", async () => {
    const { admin } = await start();
    await admin.ok("PATCH", "/admin/config/retry", { max_attempts: 4 });
    const body = { max_attempts: 5 };
    const headers = (value: string) => ({ headers: { "If-Match": value } });
    for (const value of ["1", '"1"', 'W/"1"', '"0", "1"']) {
      const error = await admin.refused(409, "PATCH", "/admin/config/retry", body, headers(value));
      expect(error.details).toMatchObject({ expected_version: expect.any(Number), current_version: 2 });
    }
    await admin.refused(409, "PUT", "/admin/config/retry", { ...body, version: 1 });
    await admin.refused(409, "PUT", "/admin/config/retry", { config: body, version: 1 });
    await admin.refused(409, "PATCH", "/admin/config/retry", { ...body, version: 2 }, headers('"1"'));
    expect((await admin.refused(400, "PATCH", "/admin/config/retry", body, headers("latest"))).fields).toEqual([
      "If-Match",
    ]);
    expect(await admin.version()).toBe(2);
    expect(await admin.ok("PATCH", "/admin/config/retry", { ...body, version: 2 })).toMatchObject({ version: 3 });
    expect(await admin.ok("PATCH", "/admin/config/retry", { max_attempts: 6 }, headers('"3"'))).toMatchObject({
      version: 4,
    });
    await admin.ok("PATCH", "/admin/config/retry", { max_attempts: 7 }, headers("*"));
  });

  test("a dry run says what would be, and changes nothing", async () => {
    const { admin } = await start();
    const dry = await admin.ok("PATCH", "/admin/config/retry?dry_run=true", { max_attempts: 9 });
    expect(dry).toMatchObject({
      applied: false,
      dry_run: true,
      version: 1,
      estimated_impact: expect.any(String),
      changes: { max_attempts: { from: 3, to: 9 } },
      merged_config: { max_attempts: 9 },
    });
    await admin.refused(400, "PATCH", "/admin/config/retry?dry_run=true", { max_attempts: -1 });
    expect((await admin.get("/admin/config/retry")).config).toMatchObject({ max_attempts: 3 });
  });
});

test("a broken file is told by hot-reload-status, and a good one ends that", async () => {
  const { gateway, admin } = await start({ backends: [] });
  const status = () => admin.get("/admin/config/hot-reload-status");
  gateway.writeConfig({ backends: [], retry: { max_attempts: 0 } });
  const broken = await waitFor("the broken file is told", async () => {
    const now = await status();
    return now.last_error !== null && now;
  });
  expect(broken).toMatchObject({
    version: 1,
    file: { failures: 1 },
    last_error: {
      timestamp: expect.stringMatching(/^\d{4}-/),
      file: gateway.configPath,
      problems: [expect.stringContaining("retry.max_attempts")],
    },
  });
  gateway.writeConfig({ backends: [], retry: { max_attempts: 2 } });
  const good = await waitFor("the good file is told", async () => {
    const now = await status();
    return now.last_error === null && now;
  });
  expect(good).toMatchObject({ version: 2, last_reload: expect.stringMatching(/^\d{4}-/) });
  expect((await admin.get("/admin/config/history?limit=1")).history).toMatchObject([{ source: "file_reload" }]);
});

describe("validate", () => {
  test("answers 200 whether the section is valid or not", async () => {
    const { admin } = await start();
    const ask = (section: string, config: unknown, more = {}) =>
      admin.ok("POST", "/admin/config/validate", { section, config, ...more });
    expect(await ask("retry", { max_attempts: 5 })).toMatchObject({
      valid: true,
      errors: [],
      warnings: [],
      hot_reload_capability: "immediate",
      info: { hot_reload_capability: "immediate_update", estimated_impact: expect.any(String) },
      changes: { max_attempts: { from: 3, to: 5 } },
    });
    expect((await ask("retry", { max_attempts: 5 }, { dry_run: false })).changes).toBeUndefined();
    expect(await ask("logging", { level: "loud" })).toMatchObject({
      valid: false,
      errors: [{ field: "logging.level", message: expect.any(String), code: "VALIDATION_ERROR", value: "loud" }],
    });
    expect(await ask("server", { workers: 3 })).toMatchObject({
      valid: true,
      hot_reload_capability: "requires_restart",
    });
    expect(await ask("retyr", {})).toMatchObject({
      valid: false,
      errors: [{ field: "section", message: expect.stringContaining("retry") }],
    });
    expect(await admin.version()).toBe(1);
  });

  test("a malformed request is 400", async () => {
    const { admin } = await start();
    const cases: [unknown, string[]][] = [
      [{}, ["section", "config"]],
      [{ section: "retry" }, ["config"]],
      [{ section: "retry", config: null }, ["config"]],
      [{ section: 1, config: {} }, ["section"]],
      [{ section: "retry", config: {}, dry_run: "yes" }, ["dry_run"]],
      [{ section: "retry", config: {}, more: 1 }, ["more"]],
    ];
    for (const [body, fields] of cases) {
      expect((await admin.refused(400, "POST", "/admin/config/validate", body)).fields.sort()).toEqual(fields.sort());
    }
    await admin.refused(400, "POST", "/admin/config/validate", "[]");
  });
});

describe("staged changes", () => {
  test("several sections become one version", async () => {
    const { admin } = await start();
    await admin.refused(400, "POST", "/admin/config/apply", {});
    const staged = await admin.ok("PUT", "/admin/config/retry?apply=false", { max_attempts: 5 });
    expect(staged).toMatchObject({
      success: true,
      applied: false,
      staged: true,
      version: 1,
      hot_reload_applied: false,
    });
    await admin.ok("PATCH", "/admin/config/logging?apply=false", { level: "debug" });
    await admin.ok("PATCH", "/admin/config/logging?apply=false", { access_log: false });
    expect((await admin.get("/admin/config")).pending_sections).toEqual(["retry", "logging"]);
    expect(await admin.get("/admin/config/staged")).toMatchObject({
      total: 2,
      staged: [
        { section: "retry", base_version: 1, conflict: false, changes: { max_attempts: { from: 3, to: 5 } } },
        { section: "logging" },
      ],
    });
    expect((await admin.get("/admin/config/retry")).config).toMatchObject({ max_attempts: 3 });

    expect(await admin.ok("POST", "/admin/config/apply")).toMatchObject({
      success: true,
      applied_sections: ["retry", "logging"],
      results: {
        retry: { status: "applied", hot_reload_type: "immediate_update", hot_reload: "immediate" },
        logging: { status: "applied" },
      },
      version: 2,
      timestamp: expect.stringMatching(/^\d{4}-/),
    });
    expect((await admin.get("/admin/config/logging")).config).toMatchObject({ level: "debug", access_log: false });
    expect((await admin.refused(400, "POST", "/admin/config/apply", {})).message).toContain("no pending changes");
  });

  test("chosen sections, discarding, and what is not staged", async () => {
    const { gateway, admin } = await start();
    await admin.ok("PATCH", "/admin/config/retry?apply=false", { max_attempts: 5 });
    await admin.ok("PATCH", "/admin/config/logging?apply=false", { level: "debug" });
    const missing = await admin.refused(400, "POST", "/admin/config/apply", { sections: ["files"] });
    expect(missing).toMatchObject({ param: "sections", details: { pending_sections: ["retry", "logging"] } });
    await admin.refused(404, "POST", "/admin/config/apply", { sections: ["nothing"] });
    await admin.refused(400, "POST", "/admin/config/apply", { sections: [] });
    await gateway.restart({ awaitHealth: false }); // staged changes survive it
    expect(await admin.ok("POST", "/admin/config/apply", { sections: ["logging"] })).toMatchObject({
      applied_sections: ["logging"],
      version: 2,
    });
    expect(await admin.ok("DELETE", "/admin/config/staged?section=retry")).toMatchObject({
      discarded_sections: ["retry"],
    });
    await admin.refused(400, "POST", "/admin/config/apply", {});
  });

  test("a section that someone else has changed meanwhile is 409, unless forced", async () => {
    const { admin } = await start();
    await admin.ok("PATCH", "/admin/config/retry?apply=false", { max_attempts: 5 });
    await admin.ok("PATCH", "/admin/config/logging", { level: "debug" }); // another section is no conflict
    await admin.ok("PATCH", "/admin/config/retry", { max_attempts: 7 });
    const error = await admin.refused(409, "POST", "/admin/config/apply", {});
    expect(error.details).toMatchObject({ expected_version: 1, current_version: 3, sections: ["retry"] });
    await admin.refused(409, "POST", "/admin/config/apply", { force: true, version: 2 });
    expect(await admin.ok("POST", "/admin/config/apply", { force: true })).toMatchObject({ version: 4 });
    expect((await admin.get("/admin/config/retry")).config).toMatchObject({ max_attempts: 5 });
  });

  test("sections that contradict each other are told while staging, and refused when applied", async () => {
    const { admin } = await start();
    const staged = await admin.ok("PATCH", "/admin/config/metrics?apply=false", {
      auth: { enabled: true, username: "u", password: null },
    });
    const missing = "metrics.auth.password: is required while metrics.auth.enabled is true";
    expect(staged.warnings).toContain(missing);
    expect((await admin.refused(400, "POST", "/admin/config/apply", {})).fields).toEqual(["metrics.auth.password"]);
    await admin.refused(400, "PUT", "/admin/config/logging?apply=false", { level: "loud" });
    expect(await admin.version()).toBe(1);
  });
});
