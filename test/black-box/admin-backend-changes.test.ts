// Backends through the admin API: create, read, update, weight, models, delete.

import { describe, expect, test } from "bun:test";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { AdminClient } from "../support/admin-client.ts";
import { readChat } from "../support/chat-reading.ts";
import { expectError } from "../support/expect-error.ts";
import { chat, chatStream } from "../support/openai-answers.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor, within } from "../support/wait-for.ts";

const bed = createTestBed();

async function start(config: ConfigDocument) {
  const gateway = await bed.gateway({ config });
  return { gateway, admin: new AdminClient(gateway) };
}

const demo = (name: string, more = {}) => ({ name, type: "demo", models: [`model-of-${name}`], ...more });

describe("create", () => {
  test("a backend serves at once, and its record has every field", async () => {
    const backend = bed.backend();
    const { gateway, admin } = await start({ backends: [] });
    await expectError(await gateway.chat(), 503);
    const { status, headers, body } = await admin.send("POST", "/admin/backends", {
      body: { name: "new", url: backend.url, models: ["m"], api_key: "sekret-key", weight: 3 },
    });
    expect(status).toBe(201);
    expect(headers.get("etag")).toBe('"2"');
    expect(body).toMatchObject({
      success: true,
      message: expect.any(String),
      version: 2,
      applied: true,
      warnings: [],
      backend: {
        name: "new",
        type: "generic",
        url: backend.url,
        weight: 3,
        models: ["m"],
        api_key: "********",
        enabled: true,
        health_check: {},
        health_status: "unknown",
        stats: { total_requests: 0, failed_requests: 0, average_latency_ms: null, last_used: null },
      },
    });
    await waitFor(
      "the first check",
      async () => (await admin.get("/admin/backends/new")).health_status === "healthy",
      {},
    );
    expect((await gateway.chat()).headers.get("x-signalbox-backend")).toBe("new");
    expect(backend.lastRequest.headers.authorization).toBe("Bearer sekret-key");
    expect(await admin.get("/admin/backends/new")).toMatchObject({ stats: { total_requests: 1, failed_requests: 0 } });
  });

  test("without a type it is generic, without a url that of its kind; other spellings count", async () => {
    const { admin, gateway } = await start({ backends: [demo("a")] as ConfigDocument["backends"] });
    const created = await admin.ok("POST", "/admin/backends", { name: "o", kind: "ollama-style", enabled: false });
    expect(created.backend).toMatchObject({ name: "o", type: "ollama-style", url: "http://127.0.0.1:11434" });
    const url = `unix:${gateway.folder}/nothing.sock`;
    const socket = { name: "s", url, enabled: false, api_key: null };
    expect((await admin.ok("POST", "/admin/backends", socket)).backend).toMatchObject({ url, api_key: null });
  });

  test("its record can be sent back whole, also where it shows the usual address", async () => {
    const { admin } = await start({ backends: [{ name: "o", type: "ollama", models: ["m"], api_key: "sekret-o" }] });
    const { health_status: _health, stats: _stats, ...record } = await admin.get("/admin/backends/o");
    expect(record.url).toBe("http://127.0.0.1:11434");
    expect(await admin.ok("PUT", "/admin/backends/o", record)).toMatchObject({ applied: false });
  });

  test("refusals name the field, and make no version", async () => {
    const { admin } = await start({
      backends: [demo("a")] as ConfigDocument["backends"],
      admin: { max_backend_name_length: 10 },
    });
    const url = "http://127.0.0.1:9";
    const cases: [unknown, string][] = [
      [{ url }, "name"],
      [{ name: null, url }, "name"],
      [{ name: 5, url }, "name"],
      [{ name: "", url }, "name"],
      [{ name: "a b", url }, "name"],
      [{ name: "../x", url }, "name"],
      [{ name: "elevenchars", url }, "name"],
      [{ name: "x" }, "url"],
      [{ name: "x", url: "ftp://x" }, "url"],
      [{ name: "x", url: 5 }, "url"],
      [{ name: "x", url, weight: 101 }, "weight"],
      [{ name: "x", url, weight: -1 }, "weight"],
      [{ name: "x", url, weight: 1.5 }, "weight"],
      [{ name: "x", url, models: "m" }, "models"],
      [{ name: "x", url, models: [""] }, "models[0]"],
      [{ name: "x", url, type: "nothing" }, "type"],
      [{ name: "x", url, type: "vllm", kind: "vllm" }, "kind"],
      [{ name: "x", url, enabled: "yes" }, "enabled"],
      [{ name: "x", url, api_key: "********" }, "api_key"],
      [{ name: "x", url, wieght: 1 }, "wieght"],
      [{ name: "x", url, version: "1" }, "version"],
    ];
    for (const [body, field] of cases) {
      const error = await admin.refused(400, "POST", "/admin/backends", body);
      expect([body, [...new Set(error.fields)]]).toEqual([body, [field]]);
      expect(error).toMatchObject({ type: "validation_error", param: field });
    }
    await admin.refused(400, "POST", "/admin/backends");
    await admin.refused(400, "POST", "/admin/backends", "[]");
    expect(await admin.refused(409, "POST", "/admin/backends", demo("a"))).toMatchObject({ param: "name" });
    await admin.refused(409, "POST", "/admin/backends", { ...demo("b"), version: 7 });
    expect(await admin.version()).toBe(1);
    const dry = await admin.send("POST", "/admin/backends?dry_run=true", { body: demo("b") });
    expect(dry).toMatchObject({ status: 200, body: { applied: false, dry_run: true, backend: { name: "b" } } });
    const { changes } = await admin.ok("PUT", "/admin/backends/a?dry_run=true", { weight: 7 });
    expect(changes).toEqual({ "a.weight": { from: 1, to: 7 } });
    expect(await admin.version()).toBe(1);
  });
});

describe("update", () => {
  test("single fields, with the others as they are", async () => {
    const backend = bed.backend();
    const { gateway, admin } = await start({
      backends: [
        { name: "a", url: "http://127.0.0.1:9", models: ["m"], api_key: "sekret-a", headers: { "X-A": "sekret-b" } },
      ],
    });
    const secrets = { api_key: "sekret-a", headers: { "X-A": "sekret-b" } };
    const changed = await admin.ok("PUT", "/admin/backends/a", { url: backend.url, ...secrets });
    expect(changed).toMatchObject({ success: true, version: 2, backend: { url: backend.url, api_key: "********" } });
    expect((await gateway.chat()).status).toBe(200);
    expect(backend.lastRequest.headers).toMatchObject({ authorization: "Bearer sekret-a", "x-a": "sekret-b" });

    // The whole record comes back, its secrets masked.
    const { health_status: _health, stats: _stats, ...record } = await admin.get("/admin/backends/a");
    expect(await admin.ok("PUT", "/admin/backends/a", record)).toMatchObject({ applied: false, version: 2 });
    await admin.ok("PUT", "/admin/backends/a", { ...record, weight: 4, models: ["m", "n"] });
    expect((await gateway.chat({ model: "n" })).status).toBe(200);
    expect(backend.lastRequest.headers.authorization).toBe("Bearer sekret-a");

    await admin.ok("PUT", "/admin/backends/a", { api_key: "sekret-c" });
    await gateway.chat();
    expect(backend.lastRequest.headers.authorization).toBe("Bearer sekret-c");
    expect((await admin.ok("PUT", "/admin/backends/a", { api_key: null })).backend).toMatchObject({ api_key: null });
    await admin.ok("PUT", "/admin/backends/a", { enabled: false });
    await expectError(await gateway.chat(), [404, 503]);
    expect((await admin.get("/admin/config/history")).total_entries).toBe(6);
  });

  test("refusals", async () => {
    const { admin } = await start({ backends: [demo("a")] as ConfigDocument["backends"] });
    const cases: [unknown, string][] = [
      [{ url: "nowhere" }, "url"],
      [{ weight: "5" }, "weight"],
      [{ name: "b" }, "name"],
      [{ stats: {} }, "stats"],
      [{ health_check: { endpoint: "x" } }, "health_check.endpoint"],
    ];
    for (const [body, field] of cases) {
      expect((await admin.refused(400, "PUT", "/admin/backends/a", body)).fields).toEqual([field]);
    }
    for (const method of ["GET", "DELETE"]) await admin.refused(404, method, "/admin/backends/b");
    await admin.refused(404, "PUT", "/admin/backends/b", { weight: 1 });
    await admin.refused(404, "PUT", "/admin/backends/b/weight", { weight: 1 });
    await admin.refused(404, "PUT", "/admin/backends/a/other", {});
    await admin.refused(404, "PUT", "/admin/backends/a/weight/x", { weight: 1 });
    await admin.refused(404, "PUT", "/admin/backends/__proto__", {});
    await admin.refused(405, "GET", "/admin/backends/a/weight");
    await admin.refused(405, "POST", "/admin/backends/a", {});
    await admin.refused(409, "PUT", "/admin/backends/a", { weight: 2 }, { headers: { "If-Match": '"9"' } });
    expect(await admin.version()).toBe(1);
  });

  test("weight", async () => {
    const { gateway, admin } = await start({ backends: [demo("a", { weight: 2 })] as ConfigDocument["backends"] });
    const path = "/admin/backends/a/weight";
    expect(await admin.ok("PUT", path, { weight: 7 })).toMatchObject({
      success: true,
      message: expect.any(String),
      previous_weight: 2,
      new_weight: 7,
      version: 2,
    });
    expect((await gateway.backend("a")).weight).toBe(7);
    expect(await admin.ok("PUT", path, { weight: 7 })).toMatchObject({
      previous_weight: 7,
      new_weight: 7,
      applied: false,
    });
    for (const body of [{}, { weight: null }, { weight: "7" }, { weight: 101 }, { weight: -1 }, { weight: 0.5 }]) {
      expect((await admin.refused(400, "PUT", path, body)).fields).toEqual(["weight"]);
    }
    expect(await admin.version()).toBe(2);
  });

  test("models are replaced or appended, also to those that the backend names itself", async () => {
    const backend = bed.backend({ models: ["own"] });
    const { gateway, admin } = await start({
      backends: [{ name: "a", url: backend.url }, demo("b", { models: ["x"] })] as ConfigDocument["backends"],
    });
    await gateway.waitForHealth("a", true);
    const set = (name: string, body: object) => admin.ok("PUT", `/admin/backends/${name}/models`, body);
    expect(await set("b", { models: ["y", "x", "y"], append: true })).toMatchObject({
      success: true,
      models: ["x", "y"],
    });
    expect(await set("b", { models: ["z"] })).toMatchObject({ models: ["z"], version: 3 });
    expect(await set("a", { models: ["more"], append: true })).toMatchObject({ models: ["own", "more"] });
    expect((await gateway.chat({ model: "more" })).status).toBe(200);
    expect((await gateway.chat({ model: "own" })).status).toBe(200);
    const refused = async (body: unknown) => (await admin.refused(400, "PUT", "/admin/backends/b/models", body)).fields;
    expect(await refused({})).toEqual(["models"]);
    expect(await refused({ models: "x" })).toEqual(["models"]);
    expect(await refused({ models: [1] })).toEqual(["models[0]"]);
    expect(await refused({ models: [], append: "yes" })).toEqual(["append"]);
  });
});

describe("delete", () => {
  test("while requests are in flight it needs force, and they finish", async () => {
    const goOn = Promise.withResolvers<void>();
    const backend = bed.backend();
    backend.queue(
      chatStream(["one ", "two"], {}, { beforeChunk: (index) => (index === 1 ? goOn.promise : undefined) }),
    );
    const { gateway, admin } = await start({ backends: [{ name: "a", url: backend.url, models: ["m"] }] });
    const running = await gateway.chat({ stream: true });
    const error = await admin.refused(409, "DELETE", "/admin/backends/a");
    expect(error).toMatchObject({ details: { in_flight: 1 } });
    await admin.refused(400, "DELETE", "/admin/backends/a?force=perhaps");
    expect(await admin.version()).toBe(1);

    expect(await admin.ok("DELETE", "/admin/backends/a?force=true")).toMatchObject({
      success: true,
      message: expect.any(String),
      removed_backend: { name: "a", url: backend.url },
      version: 2,
    });
    expect(await gateway.backend("a")).toMatchObject({ phase: "draining", in_flight: 1 });
    await admin.refused(404, "GET", "/admin/backends/a");
    await expectError(await gateway.chat(), 503);
    goOn.resolve();
    expect(await within("the stream ends", readChat(running))).toMatchObject({ text: "one two", done: 1, errors: [] });
  });

  test("the last one may go: no models, and 503 for requests", async () => {
    const backend = bed.backend({ answer: chat("hello") });
    const { gateway, admin } = await start({ backends: [{ name: "a", url: backend.url, models: ["m"] }] });
    expect(await admin.ok("DELETE", "/admin/backends/a")).toMatchObject({ removed_backend: { name: "a" } });
    const models = await gateway.fetch("/v1/models");
    expect([models.status, ((await models.json()) as { data: unknown[] }).data]).toEqual([200, []]);
    expect((await expectError(await gateway.chat(), 503)).message).toContain("No backends available");
    expect(await admin.get("/admin/backends")).toMatchObject({ backends: [], total_count: 0, healthy_count: 0 });
    expect((await admin.get("/admin/config/backends")).config).toEqual([]);
    await gateway.restart();
    expect(await admin.get("/admin/backends")).toMatchObject({ total_count: 0 });
  });

  test("what other sections say of a backend must go first", async () => {
    const { admin } = await start({
      backends: [demo("a"), demo("b")] as ConfigDocument["backends"],
      circuit_breaker: { enabled: false, backends: { a: { failure_threshold: 9 } } },
    });
    expect((await admin.refused(400, "DELETE", "/admin/backends/a")).fields).toEqual(["circuit_breaker.backends.a"]);
    await admin.ok("PATCH", "/admin/config/circuit_breaker", { backends: { a: null } });
    await admin.ok("DELETE", "/admin/backends/a");
  });
});
