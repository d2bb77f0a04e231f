// What restarts and edits of the file keep: changes made through the admin API, unless --ignore-saved is given.

import { describe, expect, test } from "bun:test";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { expectError } from "../support/expect-error.ts";
import type { Gateway } from "../support/gateway.ts";
import { runCommand, startGatewayProcess } from "../support/gateway-process.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

const bed = createTestBed();
const backend = bed.backend();

const configOf = (retry: NonNullable<ConfigDocument["retry"]> = {}): ConfigDocument => ({
  backends: [{ name: "a", url: backend.url, models: ["m"] }],
  retry: { max_attempts: 2, ...retry },
});

async function patch(gateway: Gateway, section: string, change: object): Promise<Response> {
  return await gateway.fetch(`/admin/config/${section}`, {
    method: "PATCH",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(change),
  });
}

async function patched(gateway: Gateway, section: string, change: object): Promise<number> {
  const response = await patch(gateway, section, change);
  expect(response.status).toBe(200);
  return ((await response.json()) as { version: number }).version;
}

async function retryOf(gateway: Gateway): Promise<Record<string, unknown>> {
  const response = await gateway.fetch("/admin/config/retry");
  expect(response.status).toBe(200);
  return ((await response.json()) as { config: Record<string, unknown> }).config;
}

interface History {
  history: { version: number; source: string; sections_changed: string[]; replaced: string[] }[];
  total_entries: number;
  current_version: number;
}

async function historyOf(gateway: Gateway): Promise<History> {
  return (await (await gateway.fetch("/admin/config/history?limit=100")).json()) as History;
}

const sourcesOf = async (gateway: Gateway) =>
  (await historyOf(gateway)).history.map(({ version, source }) => `${version} ${source}`);

const warnings = (gateway: Gateway) =>
  gateway.printed.logEntries.filter(({ msg }) => String(msg).includes("replaced changes that were made"));

describe("changes made through the admin API", () => {
  test("survive a restart, and another one", async () => {
    await using gateway = await startGatewayProcess({ config: configOf() });
    expect(await patched(gateway, "retry", { max_attempts: 5 })).toBe(2);
    const prompt = { default: "Be brief." };
    expect(await patched(gateway, "global_prompts", prompt)).toBe(3);
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      await gateway.stop(signal);
      await gateway.restart();
      expect(await retryOf(gateway)).toMatchObject({ max_attempts: 5 });
      expect(await sourcesOf(gateway)).toEqual(["3 api", "2 api", "1 startup"]);
      expect((await gateway.chat()).status).toBe(200);
      expect(backend.lastRequest.json()).toMatchObject({ messages: [{ role: "system", content: "Be brief." }, {}] });
      expect(warnings(gateway)).toEqual([]);
    }
    expect(await patched(gateway, "retry", { max_attempts: 6 })).toBe(4);
  });

  test("survive also where the file was written anew with the same content", async () => {
    await using gateway = await startGateway({ config: configOf() });
    await patched(gateway, "retry", { max_attempts: 5 });
    await gateway.stop();
    rmSync(gateway.configPath);
    gateway.writeConfig(configOf());
    await gateway.restart();
    expect(await retryOf(gateway)).toMatchObject({ max_attempts: 5 });
    expect((await historyOf(gateway)).current_version).toBe(2);
  });

  test("backends too, and the secrets in them", async () => {
    const added = bed.backend({ models: ["n"] });
    await using gateway = await startGateway({ config: configOf() });
    const row = { name: "added", url: added.url, models: ["n"], api_key: "sk-sekret-added" };
    expect((await gateway.post("/admin/backends", row)).status).toBeLessThan(300);
    await gateway.restart();
    expect((await gateway.chat({ model: "n" })).status).toBe(200);
    expect(added.lastRequest.headers.authorization).toBe("Bearer sk-sekret-added");
  });

  test("survive without any file", async () => {
    await using gateway = await startGatewayProcess({ config: null });
    const version = await patched(gateway, "retry", { max_attempts: 5 });
    await gateway.restart();
    expect(await retryOf(gateway)).toMatchObject({ max_attempts: 5 });
    expect((await historyOf(gateway)).current_version).toBe(version);
  });

  test("what waits for a restart is in force after it", async () => {
    await using gateway = await startGateway({ config: configOf() });
    const socket = join(gateway.folder, "signalbox.sock");
    await patched(gateway, "server", { bind_address: ["127.0.0.1:0", `unix:${socket}`] });
    await expect(fetch("http://gateway/health", { unix: socket })).rejects.toThrow();
    await gateway.restart();
    expect((await fetch("http://gateway/health", { unix: socket })).status).toBe(200);
  });
});

describe("a file that was edited is merged with what was changed through the API", () => {
  /** Each edits the file while the gateway runs, or while it does not. */
  const ways: [string, (gateway: Gateway, config: ConfigDocument, version: number) => Promise<void>][] = [
    [
      "while nothing ran",
      async (gateway, config) => {
        await gateway.stop();
        gateway.writeConfig(config);
        await gateway.restart();
      },
    ],
    [
      "while it ran",
      async (gateway, config, version) => {
        gateway.writeConfig(config);
        await waitFor(`version ${version}`, async () => (await historyOf(gateway)).current_version === version);
      },
    ],
  ];

  test.each(ways)("%s: what it did not touch stays, where both changed it wins and is named", async (_name, edit) => {
    await using gateway = await startGateway({ config: configOf() });
    await patched(gateway, "retry", { max_attempts: 5, max_delay: "3s" });
    await patched(gateway, "logging", { access_log: false });
    const added = { name: "added", type: "demo", models: ["n"] };
    expect((await gateway.post("/admin/backends", added)).status).toBe(201);
    await edit(gateway, configOf({ base_delay: "7ms" }), 5);
    expect(await retryOf(gateway)).toMatchObject({ max_attempts: 5, base_delay: "7ms", max_delay: "3s" });
    expect((await gateway.chat({ model: "n" })).status).toBe(200);
    expect(warnings(gateway)).toEqual([]);

    await edit(gateway, configOf({ base_delay: "7ms", max_attempts: 3 }), 6);
    expect(await retryOf(gateway)).toMatchObject({ max_attempts: 3, base_delay: "7ms", max_delay: "3s" });
    expect(warnings(gateway)).toMatchObject([{ level: "warn", version: 6, fields: ["retry.max_attempts"] }]);
    const { history } = await historyOf(gateway);
    expect(history.map(({ source, replaced }) => [source, replaced]).slice(0, 3)).toEqual([
      ["file_reload", ["retry.max_attempts"]],
      ["file_reload", []],
      ["api", []],
    ]);
    // And from then on nothing more happens.
    await gateway.restart();
    expect((await historyOf(gateway)).current_version).toBe(6);
    expect(await retryOf(gateway)).toMatchObject({ max_attempts: 3, max_delay: "3s" });
    // What was replaced is not lost.
    expect((await gateway.post("/admin/config/rollback/5", {})).status).toBe(200);
    expect(await retryOf(gateway)).toMatchObject({ max_attempts: 5, max_delay: "3s" });
  });

  test("in a way that contradicts a change of the API: the start is refused, and --ignore-saved helps", async () => {
    await using gateway = await startGatewayProcess({ config: configOf() });
    await patched(gateway, "circuit_breaker", { backends: { a: { failure_threshold: 9 } } });
    await gateway.stop();
    const path = gateway.configPath;
    gateway.writeConfig({ ...configOf(), backends: [{ name: "b", url: backend.url, models: ["m"] }] });
    const refused = await runCommand({ config: null, args: ["--config", path] });
    expect(refused).toMatchObject({ exitCode: 1 });
    expect(refused.stderr).toContain("circuit_breaker.backends.a: there is no backend of this name");
    expect(refused.stderr).toContain("--ignore-saved");
    await gateway.restart({ args: ["--ignore-saved"] });
    expect((await gateway.chat()).status).toBe(200);
  });

  test("to something broken: a start is refused, with the place", async () => {
    await using gateway = await startGateway({ config: configOf() });
    await patched(gateway, "retry", { max_attempts: 5 });
    await gateway.stop();
    const path = gateway.configPath;
    renameSync(path, `${path}~`);
    writeFileSync(path, "retry: {max_attempts: 0}\n");
    const broken = await runCommand({ config: null, args: ["--config", path] });
    expect(broken).toMatchObject({ exitCode: 1 });
    expect(broken.stderr).toContain("retry.max_attempts: must be at least 1");
    renameSync(`${path}~`, path);
    await gateway.restart();
    expect(await retryOf(gateway)).toMatchObject({ max_attempts: 5 });
  });
});

describe("--ignore-saved", () => {
  test("starts from the file alone, and keeps the history", async () => {
    await using gateway = await startGatewayProcess({ config: configOf() });
    await patched(gateway, "retry", { max_attempts: 5 });
    await gateway.restart({ args: ["--ignore-saved"] });
    expect(await retryOf(gateway)).toMatchObject({ max_attempts: 2 });
    expect(warnings(gateway)).toMatchObject([{ fields: ["retry.max_attempts"], version: 3 }]);
    expect(await sourcesOf(gateway)).toEqual(["3 file_reload", "2 api", "1 startup"]);
    // From now on that is what a restart finds.
    await gateway.restart();
    expect(await retryOf(gateway)).toMatchObject({ max_attempts: 2 });
    expect((await historyOf(gateway)).current_version).toBe(3);
  });

  test("changes nothing where nothing was changed", async () => {
    await using gateway = await startGatewayProcess({ config: configOf() });
    await gateway.restart({ args: ["--ignore-saved"] });
    expect(await sourcesOf(gateway)).toEqual(["1 startup"]);
    expect(warnings(gateway)).toEqual([]);
  });
});

describe("a data_dir that cannot be written", () => {
  test("the gateway serves and follows its file, and changes of the API are refused with the reason", async () => {
    const config = { ...configOf(), server: { data_dir: "./occupied/data" } };
    await using gateway = await startGateway({ config, files: { occupied: "a file in place of the folder" } });
    expect((await gateway.chat()).status).toBe(200);
    const told = gateway.printed.logEntries.find(({ msg }) => String(msg).includes("changes through the admin API"));
    expect(told).toMatchObject({ level: "error", path: join(gateway.folder, "occupied/data/config.db") });

    const { message } = await expectError(await patch(gateway, "retry", { max_attempts: 5 }), 503);
    expect(message).toContain("server.data_dir");
    expect(await retryOf(gateway)).toMatchObject({ max_attempts: 2 });
    expect((await historyOf(gateway)).current_version).toBe(1);

    gateway.writeConfig({ ...config, retry: { max_attempts: 4 } });
    await waitFor("the edit is in force", async () => (await retryOf(gateway)).max_attempts === 4);
    await gateway.restart();
    expect(await retryOf(gateway)).toMatchObject({ max_attempts: 4 });
  });
});
