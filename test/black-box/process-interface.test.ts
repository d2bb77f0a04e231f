// Process interface: options, exit codes, signals, draining, and one process without a wrapper.

import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageJson from "../../package.json";
import { BACKEND_KIND_NAMES } from "../../src/names.ts";
import { workerCount } from "../support/gateway-parts.ts";
import { COMMAND, runCommand, startGatewayProcess } from "../support/gateway-process.ts";
import { chat, chatEvents, eventStream } from "../support/openai-answers.ts";
import { listProcesses } from "../support/process-groups.ts";
import { readSse, readUntil } from "../support/sse-reader.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor, within } from "../support/wait-for.ts";

const bed = createTestBed();

function expectNoStackTrace(text: string): void {
  expect(text).not.toMatch(/^\s+at /m);
  expect(text).not.toContain("node_modules");
}

function commandOf(pid: number): { command: string; children: string[] } {
  const rows = listProcesses("pid=,ppid=,args=", "-A").map((line) => line.trim().split(/\s+/));
  const own = rows.find(([rowPid]) => rowPid === String(pid));
  const children = rows.filter(([, parent]) => parent === String(pid)).map((row) => row.slice(2).join(" "));
  return { command: own?.slice(2).join(" ") ?? "", children };
}

test("--version prints the version of package.json", async () => {
  const run = await runCommand({ args: ["--version"] });
  expect(run.exitCode).toBe(0);
  expect(run.stdout).toContain(packageJson.version);
  expect(run.stderr).toBe("");
});

test("--help names every option of the process interface", async () => {
  const run = await runCommand({ args: ["--help"] });
  expect(run.exitCode).toBe(0);
  for (const option of [
    "--config",
    "--mode",
    "--generate-config",
    "--health-check",
    "--health-check-url",
    "--check-config",
    "--json",
    "--model-metadata",
    "--help",
    "--version",
  ]) {
    expect(run.stdout).toContain(option);
  }
});

test("an unknown option is refused with the nearest known one, without a stack trace", async () => {
  const run = await runCommand({ args: ["--confg", "x.yaml"] });
  expect(run.exitCode).not.toBe(0);
  expect(run.stderr).toContain("--confg");
  expect(run.stderr).toMatch(/--config\b/);
  expectNoStackTrace(run.stderr);
});

test("an option without its value is refused", async () => {
  const run = await runCommand({ args: ["--config"] });
  expect(run.exitCode).not.toBe(0);
  expect(run.stderr).toContain("--config");
  expectNoStackTrace(run.stderr);
});

test("a mode that does not exist is refused", async () => {
  const run = await runCommand({ args: ["--mode", "carrier-pigeon"] });
  expect(run.exitCode).not.toBe(0);
  expect(run.stderr).toContain("carrier-pigeon");
  expect(run.stderr).toContain("stdio");
  expectNoStackTrace(run.stderr);
});

test("--generate-config prints a template that the command accepts", async () => {
  const run = await runCommand({ args: ["--generate-config"] });
  expect(run.exitCode).toBe(0);
  for (const section of [
    "server",
    "backends",
    "routing",
    "health_checks",
    "retry",
    "timeouts",
    "api_keys",
    "logging",
  ]) {
    expect(run.stdout).toContain(section);
  }
  await using gateway = await startGatewayProcess({ configText: run.stdout, awaitHealth: false });
  expect((await gateway.fetch("/health")).status).toBe(200);
});

test("--health-check exits 0 for a running gateway and 1 when nothing answers", async () => {
  const backend = bed.backend();
  await using gateway = await startGatewayProcess({
    config: { backends: [{ name: "a", url: backend.url, models: ["m"] }] },
  });
  const healthy = await runCommand({ args: ["--health-check", "--health-check-url", `${gateway.url}/health`] });
  expect(healthy.exitCode).toBe(0);
  await gateway.stop();
  const gone = await runCommand({ args: ["--health-check", "--health-check-url", `${gateway.url}/health`] });
  expect(gone.exitCode).toBe(1);
  expectNoStackTrace(gone.stderr);
});

test("--health-check exits 1 for an address that answers with an error", async () => {
  const backend = bed.backend();
  backend.probeAnswer = { status: 503, body: "{}" };
  const run = await runCommand({ args: ["--health-check", "--health-check-url", `${backend.url}/health`] });
  expect(run.exitCode).toBe(1);
});

test("--health-check asks the address of the configuration, or says why it cannot", async () => {
  const backend = bed.backend();
  const address = new URL(backend.url).host;
  const ask = (options: object) => runCommand({ args: ["--health-check"], ...options });

  const unread = await ask({ args: ["--config", "nowhere.yaml", "--health-check"] });
  expect(unread).toMatchObject({ exitCode: 1, stdout: "" });
  expect(unread.stderr).toContain("nowhere.yaml: cannot be read: there is no such file");
  expect(unread.stderr).toContain("name it with --health-check-url");

  const broken = await ask({ configText: "server: {bind_address: 7" });
  expect(broken).toMatchObject({ exitCode: 1, stdout: "" });
  expect(broken.stderr).toContain("gateway.yaml:1");

  const chosen = await ask({ configText: "{}", environment: { SIGNALBOX_SERVER__BIND_ADDRESS: "127.0.0.1:0" } });
  expect(chosen.exitCode).toBe(1);
  expect(chosen.stderr).toContain("chosen at the start");

  const incomplete = `server: {bind_address: "${address}"}\nbackends: [{name: a, type: openai, api_key: "\${UNSET}"}]\n`;
  const asked = await ask({ configText: incomplete });
  expect(asked).toMatchObject({ exitCode: 0, stdout: `http://${address}/health answered 200\n` });
  expect(asked.stderr).toContain("the environment variable UNSET is not set");
});

describe("--check-config", () => {
  const BAD = [
    "server: {bind_address: '127.0.0.1'}",
    "backends: [{name: a, type: vllm}, {name: a, type: vllm, weight: many}]",
    "retries: {}",
    "admin: {auth: {method: basic, password: sekret-password}}",
    "global_prompts: {default_file: nowhere.md}",
  ].join("\n");

  test("says everything that is wrong in one round, with exit 1", async () => {
    const run = await runCommand({ configText: BAD, args: ["--check-config", "--model-metadata", "nowhere.yaml"] });
    expect(run).toMatchObject({ exitCode: 1, stderr: "" });
    for (const told of [
      "gateway.yaml:1: server.bind_address: ",
      "gateway.yaml:2: backends[1].weight: ",
      'gateway.yaml:2: backends[1].name: "a" is already the name of backends[0]',
      "gateway.yaml:3: retries: ",
      "gateway.yaml:4: admin.auth.username: is required by method basic",
      "gateway.yaml:5: global_prompts.prompts_dir: ",
      "--model-metadata: ",
    ]) {
      expect(run.stdout).toContain(told);
    }
    expect(run.stdout).toStartWith("8 problems in gateway.yaml:");
  });

  test("tells names that are given twice, names of nothing and keys without a value beside all else", async () => {
    const configText = [
      "backends:",
      "  - {name: a, type: openai, api_key: k, models: [m]}",
      "  - {name: a, type: openaii, models: [n], colour: ~}",
      "circuit_breaker: {backends: {aa: {timeout: 3s}}, colour: ~}",
      "global_prompts: {backends: {b: {prompt: x}}, colour: ~}",
      "colours:",
      "api_keys:",
      "  keys:",
      "    - {key: sekret-1, id: sekret-id}",
      "    - {key: sekret-1, id: sekret-id, scopes: [all]}",
      "fallback: {fallback_chains: {m: [nn]}}",
      "server: {worker_memory_limit: 1073741824}",
    ].join("\n");
    const run = await runCommand({ configText, args: ["--check-config"] });
    expect(run).toMatchObject({ exitCode: 1, stderr: "" });
    const lines = run.stdout.split("\n").map((line) => line.replace(/; known are (?!openai).*/, ""));
    expect(lines).toEqual([
      "11 problems in gateway.yaml:",
      `  gateway.yaml:3: backends[1].type: unknown kind; known are ${BACKEND_KIND_NAMES.join(", ")}; did you mean openai?`,
      "  gateway.yaml:3: backends[1].colour: unknown key `colour`",
      '  gateway.yaml:3: backends[1].name: "a" is already the name of backends[0]',
      "  gateway.yaml:4: circuit_breaker.colour: unknown key `colour`",
      '  gateway.yaml:4: circuit_breaker.backends.aa: there is no backend of this name; did you mean "a"?',
      "  gateway.yaml:5: global_prompts.colour: unknown key `colour`",
      '  gateway.yaml:5: global_prompts.backends.b: there is no backend of this name; did you mean "a"?',
      "  gateway.yaml:6: colours: unknown key `colours`",
      "  gateway.yaml:10: api_keys.keys[1].scopes[0]: expected one of read, write, files, admin",
      "  gateway.yaml:10: api_keys.keys[1].key: is the same key as the 1st of the 2 keys",
      "  gateway.yaml:10: api_keys.keys[1].id: is the same id as that of the 1st of the 2 keys",
      "2 warnings:",
      '  fallback.fallback_chains.m[0]: no backend serves a model "nn" now; did you mean "n"?',
      "  server.worker_memory_limit has no effect while server.workers is 1",
      "",
    ]);
    const asJson = await runCommand({ configText, args: ["--check-config", "--json"] });
    const { valid, errors, warnings } = JSON.parse(asJson.stdout);
    expect({ valid, errors: errors.length, warnings: warnings.length }).toEqual({
      valid: false,
      errors: 11,
      warnings: 2,
    });
  });

  test("warns of chains to models that no backend is configured for", async () => {
    const configText = "backends: [{name: a, type: demo, models: [m]}]\nfallback: {fallback_chains: {m: [other]}}\n";
    const run = await runCommand({ configText, args: ["--check-config"] });
    expect(run).toMatchObject({ exitCode: 0, stderr: "" });
    expect(run.stdout).toBe(
      'gateway.yaml: nothing is wrong\n  fallback.fallback_chains.m[0]: no backend serves a model "other" now\n',
    );
  });

  test("says nothing is wrong with exit 0, and what has no effect", async () => {
    const run = await runCommand({ configText: "server: {worker_memory_limit: 1073741824}", args: ["--check-config"] });
    expect(run).toMatchObject({ exitCode: 0, stderr: "" });
    expect(run.stdout).toContain("gateway.yaml: nothing is wrong\n  server.worker_memory_limit has no effect while");
    const without = await runCommand({ config: null, args: ["--check-config"] });
    expect(without.exitCode).toBe(0);
    expect(without.stdout).toContain("there is no configuration file");
  });

  test("as JSON on request", async () => {
    const bad = await runCommand({ configText: BAD, args: ["--check-config", "--json"] });
    expect(bad).toMatchObject({ exitCode: 1, stderr: "" });
    const answer = JSON.parse(bad.stdout);
    expect(answer).toMatchObject({ valid: false, file: expect.stringMatching(/gateway\.yaml$/), warnings: [] });
    expect(answer.errors).toContainEqual({
      field: "admin.auth.username",
      message: "is required by method basic",
      file: answer.file,
      line: 4,
      variable: null,
    });
    const good = await runCommand({ configText: "{}", args: ["--check-config", "--json"] });
    expect(JSON.parse(good.stdout)).toMatchObject({ valid: true, errors: [], warnings: [] });
    expect((await runCommand({ args: ["--json"] })).stderr).toContain("--check-config");
  });
});

test("a taken port is one clear line and exit 1", async () => {
  const taken = bed.backend();
  const run = await runCommand({
    config: { server: { bind_address: `127.0.0.1:${taken.port}` }, backends: [{ name: "a", type: "demo" }] },
  });
  expect(run.exitCode).toBe(1);
  const lines = run.stderr.split("\n").filter((line) => line.includes(String(taken.port)));
  expect(lines).toHaveLength(1);
  expectNoStackTrace(run.stderr);
});

test("the started process is the gateway itself: no wrapper stays, no child is left", async () => {
  const config = { backends: [{ name: "a", type: "demo" }] };
  await using gateway = await startGatewayProcess({ config, command: [COMMAND] });
  const { command, children } = commandOf(gateway.pid);
  expect(command).toMatch(/main\.[jt]s/);
  expect(command).not.toMatch(/^(\S*\/)?(sh|dash|bash|node|npm)\b/);
  const workers = workerCount() === 1 ? 0 : workerCount();
  expect(children).toHaveLength(workers);
});

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  test(`${signal}: no new connections, the running stream finishes, then exit 0`, async () => {
    const events = chatEvents(["one", "two", "three"]);
    const gate = Promise.withResolvers<void>();
    const backend = bed.backend({
      answer: eventStream(events, { beforeChunk: (index) => (index === 2 ? gate.promise : undefined) }),
    });
    await using gateway = await startGatewayProcess({
      config: { backends: [{ name: "a", url: backend.url, models: ["m"] }] },
    });
    const response = await gateway.chat({ stream: true });
    const reader = response.body!.getReader();
    const beginning = await readUntil(reader, "one");
    gateway.process.kill(signal);
    await waitFor("new requests are refused", async () => {
      const answer = await gateway.chat({}, { signal: AbortSignal.timeout(500) }).catch(() => undefined);
      await answer?.text();
      return answer === undefined || answer.status === 503;
    });
    expect(gateway.process.hasExited).toBe(false);
    gate.resolve();
    const rest = await readUntil(reader, "[DONE]");
    expect(beginning + rest).toBe(events.join(""));
    const finished = await gateway.process.finished();
    expect(finished.exitCode).toBe(0);
    expectNoStackTrace(finished.stderr);
  });
}

test("SIGTERM: plain requests on their way are answered, none is lost", async () => {
  const gate = Promise.withResolvers<void>();
  const backend = bed.backend({ answer: { ...chat("in time"), headersAfter: gate.promise } });
  await using gateway = await startGatewayProcess({
    config: { backends: [{ name: "a", url: backend.url, models: ["m"] }] },
  });
  const pending = Array.from({ length: 20 }, () => gateway.chat());
  await waitFor("all have reached the backend", () => backend.requests.length === 20);
  gateway.process.kill("SIGTERM");
  await Bun.sleep(50);
  gate.resolve();
  for (const response of await Promise.all(pending)) {
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(chat("in time").body as string);
  }
  expect((await gateway.process.finished()).exitCode).toBe(0);
});

test("the command works from any folder and through a link", async () => {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-link-"));
  const link = join(folder, "signalbox");
  symlinkSync(join(import.meta.dir, "..", "..", "bin", "signalbox"), link);
  const run = Bun.spawn(["sh", link, "--version"], { cwd: folder, stdout: "pipe" });
  expect(await new Response(run.stdout).text()).toContain(packageJson.version);
  expect(await run.exited).toBe(0);
  rmSync(folder, { recursive: true });
});

test("an idle gateway with an open keep-alive connection ends at once", async () => {
  await using gateway = await startGatewayProcess({ config: { backends: [{ name: "a", type: "demo" }] } });
  await (await gateway.fetch("/health")).text();
  const startedMs = performance.now();
  expect(await gateway.stop("SIGTERM")).toBe(0);
  expect(performance.now() - startedMs).toBeLessThan(5_000);
});

test("a stream that outlives shutdown_timeout is cut, never ended cleanly, and the exit code is 0", async () => {
  const backend = bed.backend({
    answer: eventStream(chatEvents(["one", "two"]), {
      beforeChunk: (index) => (index === 2 ? new Promise<void>(() => {}) : undefined),
    }),
  });
  await using gateway = await startGatewayProcess({
    config: {
      server: { shutdown_timeout: "200ms" },
      backends: [{ name: "a", url: backend.url, models: ["m"] }],
    },
  });
  const response = await gateway.chat({ stream: true });
  const reading = readSse(response);
  await waitFor("the backend has the request", () => backend.requests.length === 1);
  gateway.process.kill("SIGTERM");
  const finished = await gateway.process.finished();
  expect(finished.exitCode).toBe(0);
  const { data, end } = await within("the client's stream ends", reading);
  expect(data).not.toContain("[DONE]");
  const lastError = JSON.parse(data.at(-1) ?? "{}") as { error?: { message: string } };
  // Either the error event still reached the client, or the connection visibly broke.
  expect(end === "broken" || lastError.error !== undefined).toBe(true);
});

test("a second signal while draining ends the process at once", async () => {
  const backend = bed.backend({ answer: { hang: true } });
  await using gateway = await startGatewayProcess({
    config: { backends: [{ name: "a", url: backend.url, models: ["m"] }] },
  });
  const pending = gateway.chat().catch(() => undefined);
  await waitFor("the backend has the request", () => backend.requests.length === 1);
  gateway.process.kill("SIGINT");
  await waitFor("draining began", async () => {
    const answer = await gateway.fetch("/readyz").catch(() => undefined);
    return answer === undefined || answer.status !== 200;
  });
  gateway.process.kill("SIGINT");
  await gateway.process.finished();
  await pending;
});
