// Configuration as the process shows it: discovery, environment, expansion, and every problem at once with its line.

import { expect, test } from "bun:test";
import { type FinishedRun, runCommand, startGatewayProcess } from "../support/gateway-process.ts";
import { SECRET_MARK } from "../support/printed.ts";
import { startGateway } from "../support/start-gateway.ts";
import { createTestBed } from "../support/test-bed.ts";

const bed = createTestBed();

function expectRefusal(run: FinishedRun): string {
  expect(run.exitCode).toBe(1);
  expect(run.stderr).not.toMatch(/^\s+at /m);
  expect(run.stderr).not.toMatch(/ZodError|TypeError|node_modules|src\//);
  return run.stderr;
}

/** The message line that speaks of a key also tells the line of the file. */
function expectLine(stderr: string, key: string, line: number): void {
  const message = stderr.split("\n").find((candidate) => candidate.includes(key));
  if (message === undefined) throw new Error(`no message names ${key}:\n${stderr}`);
  expect(message).toMatch(new RegExp(`(line |:)${line}\\b`));
}

test("all problems are reported at once, each with its path, its line and the nearest known key", async () => {
  const run = await runCommand({
    configText: [
      "server:",
      "  bind_adress: 127.0.0.1:0",
      "backends:",
      "  - name: bad name",
      "    url: ftp://example.org",
      "    wieght: 2",
      "retry:",
      "  base_delay: 100",
      "  max_attempts: 0",
      "logging:",
      "  level: loud",
      "rooting: {}",
      "",
    ].join("\n"),
  });
  const stderr = expectRefusal(run);
  expectLine(stderr, "bind_adress", 2);
  expectLine(stderr, "backends[0].name", 4);
  expectLine(stderr, "backends[0].url", 5);
  expectLine(stderr, "wieght", 6);
  expectLine(stderr, "retry.base_delay", 8);
  expectLine(stderr, "retry.max_attempts", 9);
  expectLine(stderr, "logging.level", 11);
  expectLine(stderr, "rooting", 12);
  expect(stderr).toContain("bind_address");
  expect(stderr).toContain("weight");
  expect(stderr).toContain("routing");
});

test("duplicate names and missing addresses are refused with their index", async () => {
  const run = await runCommand({
    configText:
      "backends:\n  - { name: a, url: http://127.0.0.1:1 }\n  - { name: a, url: http://127.0.0.1:2 }\n  - { name: c }\n",
  });
  const stderr = expectRefusal(run);
  expectLine(stderr, "backends[1].name", 3);
  expect(stderr).toContain("backends[2].url");
});

test("YAML that cannot be read names the line", async () => {
  const run = await runCommand({ configText: "server:\n  bind_address: one: two\nbackends: []\n" });
  expect(expectRefusal(run)).toMatch(/(line |:)2\b/);
});

test("a file that does not exist and a folder are one clear message", async () => {
  expect(expectRefusal(await runCommand({ args: ["--config", "nowhere.yaml"] }))).toContain("nowhere.yaml");
  expect(expectRefusal(await runCommand({ args: ["--config", "."] }))).toContain("folder");
});

test("a top level that is no mapping is refused", async () => {
  for (const configText of ["- a\n", "just text\n", "5\n"]) expectRefusal(await runCommand({ configText }));
});

test("an unset variable names the key, and no secret is printed in any message", async () => {
  const run = await runCommand({
    configText: [
      "backends:",
      "  - name: a",
      "    url: http://127.0.0.1:1",
      "    api_key: ${TEST_UNSET_VARIABLE}",
      "api_keys:",
      "  keys:",
      `    - key: ${SECRET_MARK}`,
      "      scopes: [everything]",
      "",
    ].join("\n"),
  });
  const stderr = expectRefusal(run);
  expect(stderr).toContain("TEST_UNSET_VARIABLE");
  expect(stderr).toContain("backends[0].api_key");
  expect(stderr).not.toContain(SECRET_MARK);
});

test("variables expand, with defaults, also inside a text", async () => {
  const backend = bed.backend();
  await using gateway = await startGateway({
    configText: [
      "backends:",
      "  - name: ${BACKEND_NAME:-fallback-name}",
      "    url: http://127.0.0.1:${BACKEND_PORT}",
      "    api_key: ${BACKEND_KEY}",
      "    models: [m]",
      "",
    ].join("\n"),
    environment: { BACKEND_PORT: String(backend.port), BACKEND_KEY: `${SECRET_MARK}-expanded` },
  });
  expect((await gateway.chat()).status).toBe(200);
  expect(backend.lastRequest.headers.authorization).toBe(`Bearer ${SECRET_MARK}-expanded`);
  expect((await gateway.backends()).map(({ name }) => name)).toEqual(["fallback-name"]);
});

test("TOML says the same as YAML", async () => {
  const backend = bed.backend();
  await using gateway = await startGateway({
    configName: "gateway.toml",
    configText: `[[backends]]\nname = "from-toml"\nurl = "${backend.url}"\nmodels = ["m"]\n\n[retry]\nmax_attempts = 2\n`,
  });
  expect((await gateway.chat()).headers.get("x-signalbox-backend")).toBe("from-toml");
});

test("a problem in TOML names its key", async () => {
  const run = await runCommand({ configName: "gateway.toml", configText: "[retry]\nmax_atempts = 2\n" });
  const stderr = expectRefusal(run);
  expect(stderr).toContain("max_atempts");
  expect(stderr).toContain("max_attempts");
});

test("the environment wins over the file", async () => {
  const backend = bed.backend();
  await using gateway = await startGateway({
    config: { backends: [{ name: "a", url: backend.url, models: ["m"] }], api_keys: { mode: "permissive" } },
    environment: { SIGNALBOX_API_KEYS__MODE: "blocking" },
  });
  expect((await gateway.chat()).status).toBe(401);
});

test("a mistake in the environment names the variable", async () => {
  const run = await runCommand({
    config: { backends: [{ name: "a", type: "demo" }] },
    environment: { SIGNALBOX_RETRY__MAX_ATTEMPTS: "many" },
  });
  expect(expectRefusal(run)).toMatch(/SIGNALBOX_RETRY__MAX_ATTEMPTS|retry\.max_attempts/);
});

test("config.yaml in the working folder and in the user's configuration folder is found", async () => {
  const backend = bed.backend();
  const text = (name: string): string => `backends: [{ name: ${name}, url: "${backend.url}", models: [m] }]\n`;
  const user = { "home/.config/signalbox/config.yaml": text("user-folder") };
  await using fromUser = await startGatewayProcess({ config: null, files: user });
  expect((await fromUser.backends()).map(({ name }) => name)).toEqual(["user-folder"]);
  await using fromFolder = await startGatewayProcess({
    config: null,
    files: { ...user, "config.yaml": text("working-folder") },
  });
  expect((await fromFolder.backends()).map(({ name }) => name)).toEqual(["working-folder"]);
});
