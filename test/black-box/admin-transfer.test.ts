// Save and restore: export, import, history and rollback.

import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { parse as parseYaml } from "yaml";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();

const CONFIG: ConfigDocument = {
  backends: [
    { name: "a", type: "demo", models: ["m"], api_key: "sekret-a", headers: { "X-Team": "sekret-team" } },
    { name: "b", type: "demo", models: ["n"], api_key: "${KEY_OF_B}" },
  ],
  retry: { max_attempts: 4 },
  api_keys: { keys: [{ id: "k", key: "sekret-key-1" }] },
};

async function start(config: ConfigDocument = CONFIG) {
  const gateway = await bed.gateway({ config, environment: { KEY_OF_B: "sekret-b" }, awaitHealth: false });
  return { gateway, admin: new AdminClient(gateway) };
}

const READERS: Record<string, (text: string) => unknown> = {
  yaml: parseYaml,
  json: JSON.parse,
  toml: Bun.TOML.parse,
};

describe("export", () => {
  test.each(["yaml", "json", "toml"])("as %s, with defaults and masked", async (format) => {
    const { admin } = await start();
    const exported = await admin.ok("POST", "/admin/config/export", { format });
    expect(exported).toMatchObject({
      format,
      exported_at: expect.stringMatching(/^\d{4}-/),
      sections_exported: expect.arrayContaining(["server", "backends", "retry", "response_cache"]),
      version: 1,
    });
    const content = exported.content as string;
    expect(exported.checksum).toBe(`sha256:${createHash("sha256").update(content).digest("hex")}`);
    expect(READERS[format]?.(content)).toMatchObject({
      backends: [{ name: "a", api_key: "********" }, { api_key: "${KEY_OF_B}" }],
      retry: { max_attempts: 4, max_delay: "10s" },
    });
  });

  test("YAML without being asked, chosen sections, without defaults", async () => {
    const { admin } = await start();
    expect(await admin.ok("POST", "/admin/config/export")).toMatchObject({ format: "yaml" });
    const small = await admin.ok("POST", "/admin/config/export", { sections: ["retry"], include_defaults: false });
    expect(small).toMatchObject({ sections_exported: ["retry"] });
    expect(parseYaml(small.content as string)).toEqual({ retry: { max_attempts: 4 } });
  });

  test("refusals", async () => {
    const { admin } = await start();
    const refused = (status: number, body: unknown) => admin.refused(status, "POST", "/admin/config/export", body);
    expect((await refused(400, { format: "xml" })).fields).toEqual(["format"]);
    expect((await refused(400, { formta: "yaml" })).fields).toEqual(["formta"]);
    expect((await refused(400, { sections: [] })).fields).toEqual(["sections"]);
    expect((await refused(400, { include_defaults: "no" })).fields).toEqual(["include_defaults"]);
    expect((await refused(404, { sections: ["nothing"] })).type).toBe("not_found");
    expect((await refused(403, { include_sensitive: true })).param).toBe("include_sensitive");
  });
});

describe("import", () => {
  const path = "/admin/config/import";

  test.each(["yaml", "json", "toml"])(
    "what was exported as %s comes back unchanged, secrets included",
    async (format) => {
      const { admin } = await start();
      const { content } = await admin.ok("POST", "/admin/config/export", { format });
      expect(await admin.ok("POST", path, { format, content })).toMatchObject({
        success: true,
        applied: false,
        version: 1,
      });
      await admin.ok("PATCH", "/admin/config/retry", { max_attempts: 9 });
      expect(await admin.ok("POST", path, { format, content })).toMatchObject({
        success: true,
        message: expect.any(String),
        version: 3,
        validation: { valid: true, errors: [], warnings: [] },
        sections_imported: expect.arrayContaining(["retry"]),
        imported_sections: expect.arrayContaining(["retry"]),
        hot_reload_results: {
          retry: { status: "applied", hot_reload_type: "immediate_update" },
          files: { status: "unchanged" },
        },
        applied: true,
        timestamp: expect.stringMatching(/^\d{4}-/),
      });
      expect((await admin.get("/admin/config/retry")).config).toMatchObject({ max_attempts: 4 });
    },
  );

  test("replaces the named sections and keeps the others; with merge they are merged", async () => {
    const { admin } = await start();
    await admin.ok("POST", path, { format: "yaml", content: "retry: {max_delay: 20s}" });
    expect((await admin.get("/admin/config/retry")).config).toMatchObject({ max_attempts: 3, max_delay: "20s" });
    expect((await admin.get("/admin/config")).backends).toMatchObject({ count: 2 });
    await admin.ok("POST", path, { format: "yaml", content: "retry: {max_attempts: 6}", merge: true });
    expect((await admin.get("/admin/config/retry")).config).toMatchObject({ max_attempts: 6, max_delay: "20s" });
  });

  test("a dry run previews, valid or not", async () => {
    const { admin } = await start();
    const preview = (content: string) => admin.ok("POST", path, { format: "yaml", content, dry_run: true });
    expect(await preview("retry: {max_attempts: 6}\nlogging: {level: debug}")).toMatchObject({
      valid: true,
      dry_run: true,
      changes_preview: {
        retry: { max_attempts: { from: 4, to: 6 } },
        logging: { level: { from: "info", to: "debug" } },
      },
      sections_affected: expect.arrayContaining(["retry", "logging"]),
      warnings: [],
    });
    expect(await preview("retry: {max_attempts: 0}")).toMatchObject({
      valid: false,
      errors: [{ field: "retry.max_attempts" }],
      sections_affected: ["retry"],
    });
    expect(await preview("retyr: {}")).toMatchObject({ valid: false, errors: [{ field: "retyr" }] });
    expect(await admin.version()).toBe(1);
  });

  test("without apply it is staged", async () => {
    const { admin } = await start();
    const staged = await admin.ok("POST", path, {
      format: "json",
      content: '{"retry":{"max_attempts":8}}',
      apply: false,
    });
    expect(staged).toMatchObject({ success: true, applied: false, version: 1, staged: ["retry"] });
    expect(await admin.ok("POST", "/admin/config/apply")).toMatchObject({ applied_sections: ["retry"], version: 2 });
  });

  test("refusals, none of which makes a version", async () => {
    const { admin } = await start();
    const refused = (status: number, body: unknown) => admin.refused(status, "POST", path, body);
    const yaml = (content: string, more = {}) => ({ format: "yaml", content, ...more });
    expect((await refused(400, {})).fields.sort()).toEqual(["content", "format"]);
    expect((await refused(400, { format: "xml", content: "a" })).fields).toEqual(["format"]);
    expect((await refused(400, { format: "yaml", content: {} })).fields).toEqual(["content"]);
    for (const [format, content] of [
      ["yaml", "retry: {max_attempts: [}"],
      ["yaml", "retry: 1\nretry: 2"],
      ["json", '{"retry": {'],
      ["json", '{"retry": {"max_attempts": 1, "max_attempts": 2}}'],
      ["toml", "retry = {"],
      ["yaml", "- a"],
      ["yaml", ""],
      ["json", `{"retry": ${"[".repeat(10_000)}${"]".repeat(10_000)}}`],
      ["json", '{"retry": {"max_attempts": 1e999}}'],
      ["yaml", "&a [*a, *a]"],
    ]) {
      expect([content, (await refused(400, { format, content })).fields]).toEqual([content, ["content"]]);
    }
    expect(await refused(422, yaml("retry: {max_attempts: 0}"))).toMatchObject({
      type: "validation_error",
      code: 422,
      fields: ["retry.max_attempts"],
    });
    expect((await refused(422, yaml("retyr: {}"))).fields).toEqual(["retyr"]);
    expect((await refused(422, yaml("retry: {max_attemps: 1}", { merge: true }))).fields).toEqual([
      "retry.max_attemps",
    ]);
    expect((await refused(422, yaml("retry: {max_attempts: 0}", { apply: false }))).fields).toEqual([
      "retry.max_attempts",
    ]);
    expect((await refused(422, yaml('backends: [{name: new, type: demo, api_key: "********"}]'))).fields).toEqual([
      "backends[0].api_key",
    ]);
    const large = `# ${"x".repeat(2 ** 20)}`;
    expect(await refused(413, yaml(large))).toMatchObject({ type: "payload_too_large", param: "content" });
    await refused(409, yaml("retry: {max_attempts: 5}", { version: 7 }));
    await refused(409, yaml("retry: {max_attempts: 5}", { version: 7, dry_run: true }));
    expect(await admin.version()).toBe(1);
    // The limit itself is allowed.
    const text = "retry: {max_attempts: 5} # ";
    await admin.ok("POST", path, yaml(text + "x".repeat(2 ** 20 - text.length)));
  });
});

describe("history and rollback", () => {
  test("pages, the newest first", async () => {
    const { admin } = await start();
    for (let attempts = 5; attempts < 10; attempts++)
      await admin.ok("PATCH", "/admin/config/retry", { max_attempts: attempts });
    await admin.ok("PATCH", "/admin/config/logging", { level: "debug" });
    const all = await admin.get("/admin/config/history");
    expect(all).toMatchObject({ total_entries: 7, current_version: 7 });
    const versions = (page: Record<string, unknown>) =>
      (page.history as { version: number }[]).map(({ version }) => version);
    expect(versions(all)).toEqual([7, 6, 5, 4, 3, 2, 1]);
    expect((all.history as object[])[0]).toEqual({
      version: 7,
      timestamp: expect.stringMatching(/^\d{4}-/),
      sections_changed: ["logging"],
      source: "api",
      user: null,
      description: "PATCH logging",
      rollback_available: false,
      changes: { logging: { level: { from: "info", to: "debug" } } },
      replaced: [],
    });
    expect((all.history as object[])[6]).toMatchObject({ source: "startup", rollback_available: true });
    expect(versions(await admin.get("/admin/config/history?limit=2&offset=1"))).toEqual([6, 5]);
    expect(versions(await admin.get("/admin/config/history?limit=500"))).toHaveLength(7);
    expect(await admin.get("/admin/config/history?offset=100")).toMatchObject({ history: [], total_entries: 7 });
    expect(await admin.get("/admin/config/history?section=logging&limit=1")).toMatchObject({
      history: [{ version: 7 }],
    });
    for (const [query, field] of [
      ["limit=-1", "limit"],
      ["limit=0", "limit"],
      ["limit=x", "limit"],
      ["offset=-1", "offset"],
      ["offset=1.5", "offset"],
      ["offset=99999999999999999999", "offset"],
    ]) {
      expect((await admin.refused(400, "GET", `/admin/config/history?${query}`)).param).toBe(field);
    }
    await admin.refused(404, "GET", "/admin/config/history?section=nothing");
  });

  test("one version alone, with what it changed and its whole configuration, and no secret of it", async () => {
    const { admin } = await start();
    await admin.ok("PATCH", "/admin/config/api_keys", { keys: [{ id: "team", key: "sekret-team-0123456789" }] });
    await admin.ok("PATCH", "/admin/config/retry", { max_attempts: 9 });
    expect(await admin.get("/admin/config/history/3")).toMatchObject({
      version: 3,
      sections_changed: ["retry"],
      rollback_available: false,
      changes: { retry: { max_attempts: { to: 9 } } },
      config: { retry: { max_attempts: 9 }, api_keys: { keys: [{ id: "team" }] } },
    });
    const { changes, config } = await admin.get("/admin/config/history/2");
    expect(changes).toHaveProperty("api_keys");
    expect(config).not.toHaveProperty("retry.max_attempts", 9);
    await admin.refused(404, "GET", "/admin/config/history/99");
    await admin.refused(400, "GET", "/admin/config/history/newest");
  });

  test("rollback: everything, chosen sections, or only a look", async () => {
    const { admin } = await start();
    await admin.ok("PATCH", "/admin/config/retry", { max_attempts: 9 });
    await admin.ok("PATCH", "/admin/config/logging", { level: "debug" });
    const path = "/admin/config/rollback/1";
    const dry = await admin.ok("POST", path, { dry_run: true });
    expect(dry).toMatchObject({
      success: true,
      dry_run: true,
      previous_version: 3,
      new_version: null,
      sections_rolled_back: expect.arrayContaining(["retry", "logging"]),
      changes: { retry: { max_attempts: { from: 9, to: 4 } }, logging: { level: { from: "debug", to: "info" } } },
    });
    expect(await admin.version()).toBe(3);
    expect(await admin.ok("POST", path, { sections: ["logging"] })).toMatchObject({
      success: true,
      message: expect.any(String),
      previous_version: 3,
      new_version: 4,
      sections_rolled_back: ["logging"],
      changes: { logging: { level: { from: "debug", to: "info" } } },
    });
    expect((await admin.get("/admin/config/retry")).config).toMatchObject({ max_attempts: 9 });
    expect(await admin.ok("POST", path)).toMatchObject({ new_version: 5, sections_rolled_back: ["retry"] });
    expect((await admin.get("/admin/config/history?limit=1")).history).toMatchObject([
      { version: 5, source: "rollback" },
    ]);
    expect((await admin.get("/admin/config/retry")).config).toMatchObject({ max_attempts: 4 });
  });

  test("refusals", async () => {
    const { admin } = await start();
    for (const version of ["7", "0", "99999999999999999999999"]) {
      const error = await admin.refused(404, "POST", `/admin/config/rollback/${version}`, {});
      expect(error).toMatchObject({ type: "not_found", param: "version" });
    }
    for (const version of ["x", "-1", "1.5", "1/2"]) {
      expect((await admin.refused(400, "POST", `/admin/config/rollback/${version}`, {})).fields).toEqual(["version"]);
    }
    await admin.refused(404, "POST", "/admin/config/rollback/1", { sections: ["nothing"] });
    expect((await admin.refused(400, "POST", "/admin/config/rollback/1", { sections: "retry" })).fields).toEqual([
      "sections",
    ]);
    await admin.refused(409, "POST", "/admin/config/rollback/1", { version: 5 });
    await admin.refused(405, "GET", "/admin/config/rollback/1");
    expect(await admin.version()).toBe(1);
  });
});

describe("from one gateway to another", () => {
  const TOKEN = { authorization: "Bearer sekret-admin" };
  const path = "/admin/config/import";

  /** What an export of a gateway with another port, folder and variables looks like. */
  async function exported(): Promise<{ format: string; content: string }> {
    const { admin } = await start({
      ...CONFIG,
      server: { data_dir: "elsewhere", workers: 1 },
      api_keys: {},
      backends: [{ name: "b", type: "vllm", url: backend.url, models: ["n"], api_key: "${KEY_OF_B}" }],
    });
    const { content } = await admin.ok("POST", "/admin/config/export");
    return { format: "yaml", content: (content as string).replace("127.0.0.1:0", "0.0.0.0:9999") };
  }

  async function emptyGateway(auth?: NonNullable<ConfigDocument["admin"]>["auth"]) {
    const environment = { KEY_OF_B: "sekret-b", OTHER_KEY: "sekret-c" };
    return await bed.gateway({ config: { backends: [], admin: { auth } }, environment, awaitHealth: false });
  }

  const backend = bed.backend();
  const operator = { method: "bearer_token", token: "sekret-admin" } as const;

  test("server-specific fields are left out with a warning, and variables are confirmed with credentials", async () => {
    const body = await exported();
    const gateway = await emptyGateway(operator);
    const admin = new AdminClient(gateway, TOKEN);
    const refused = await admin.refused(422, "POST", path, body);
    expect(refused.fields).toEqual(["backends[0].api_key"]);
    expect(refused.message).toContain('"confirm_variables": ["KEY_OF_B"]');
    await admin.refused(422, "POST", path, { ...body, confirm_variables: ["OTHER_KEY"] });

    const confirmed = { ...body, confirm_variables: ["KEY_OF_B"] };
    const preview = await admin.ok("POST", path, { ...confirmed, dry_run: true });
    expect(preview).toMatchObject({ valid: true });
    const imported = await admin.ok("POST", path, confirmed);
    const { warnings } = imported.validation as { warnings: string[] };
    expect(warnings).toEqual(preview.warnings as string[]);
    expect(warnings.filter((text) => text.includes("left out")).map((text) => text.split(" ", 1)[0])).toEqual([
      "server.data_dir",
      "server.bind_address",
    ]);
    expect((await admin.get("/admin/config/server")).config).toMatchObject({
      bind_address: "127.0.0.1:0",
      data_dir: "./data",
    });
    expect((await admin.get("/admin/config/retry")).config).toMatchObject({ max_attempts: 4 });
    await waitFor("the backend is there", async () => (await gateway.chat({ model: "n" })).status === 200);
    expect(backend.lastRequest.headers.authorization).toBe("Bearer sekret-b");
    expect(gateway.printed.stderr).toContain("an import may name variables of the environment");
    // It stands there now.
    await admin.ok("PUT", "/admin/backends/b", { api_key: "${KEY_OF_B}", weight: 2 });
  });

  test("nobody confirms without credentials in the request, for later, outside of secrets, or the gateway's own", async () => {
    const variables = { confirm_variables: ["KEY_OF_B", "SIGNALBOX_ADMIN__AUTH__TOKEN"] };
    const yaml = (content: string, more = {}) => ({ format: "yaml", content, ...variables, ...more });
    const keyed = (text: string) => yaml(`backends: [{name: b, type: demo, api_key: "${text}"}]`);

    const open = new AdminClient(await emptyGateway());
    expect((await open.refused(403, "POST", path, keyed("${KEY_OF_B}"))).param).toBe("confirm_variables");
    const unhinted = await open.refused(422, "POST", path, { ...keyed("${KEY_OF_B}"), confirm_variables: [] });
    expect(unhinted.message).not.toContain("confirm_variables");

    const gateway = await emptyGateway(operator);
    const admin = new AdminClient(gateway, TOKEN);
    expect((await admin.refused(400, "POST", path, { ...keyed("${KEY_OF_B}"), apply: false })).param).toBe(
      "confirm_variables",
    );
    await admin.refused(422, "POST", path, keyed("${SIGNALBOX_ADMIN__AUTH__TOKEN}"));
    for (const content of [
      'global_prompts: {default: "${KEY_OF_B}"}',
      'backends: [{name: b, type: vllm, url: "http://${KEY_OF_B}.example"}]',
      'backends: [{name: b, type: vllm, url: "http://u:${KEY_OF_B}@h"}]',
    ]) {
      await admin.refused(422, "POST", path, yaml(content));
    }
    await admin.refused(400, "PUT", "/admin/config/backends", [{ name: "b", type: "demo", api_key: "${KEY_OF_B}" }]);

    const signIn = await gateway.fetch("/admin/session", {
      method: "POST",
      headers: { "content-type": "application/json", origin: gateway.url },
      body: JSON.stringify({ token: operator.token }),
    });
    const cookie = signIn.headers.get("set-cookie")?.split(";", 1)[0] as string;
    const browser = new AdminClient(gateway, { cookie, origin: gateway.url });
    expect((await browser.refused(403, "POST", path, keyed("${KEY_OF_B}"))).param).toBe("confirm_variables");
    expect(await admin.version()).toBe(1);
  });
});
