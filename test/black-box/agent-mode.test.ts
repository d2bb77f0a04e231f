// Agent mode from outside, with a scripted server in the place of ACP: what it starts with, what it leaves alone, and how it
// ends.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { VERSION } from "../../src/names.ts";
import { AdminClient } from "../support/admin-client.ts";
import { AgentProcess, type AgentProcessOptions } from "../support/agent-process.ts";
import { batchLine, createBatch, openaiClient, whenEnded } from "../support/batch-client.ts";
import { FakeBackend } from "../support/fake-backend.ts";
import { chat, chatStream } from "../support/openai-answers.ts";
import { ask, ownIdOf, recordingConfig, recordingOf } from "../support/recordings.ts";
import { createTestBed } from "../support/test-bed.ts";
import { waitFor } from "../support/wait-for.ts";

setDefaultTimeout(30_000);
const bed = createTestBed();
const root = join(import.meta.dir, "..", "..");

/** Bundled as `bin/bundle` does with the program: a start costs half the CPU time of one from the sources. */
const bundle = mkdtempSync(join(tmpdir(), "signalbox-scripted-"));
const SCRIPTED = [join(root, "bin", "bun"), join(bundle, "scripted-agent.js")];
beforeAll(() => {
  const source = join(root, "test", "support", "scripted-agent.ts");
  const options = ["--target=bun", "--format=cjs", "--bytecode", `--outdir=${bundle}`];
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, "build", source, ...options]);
  if (exitCode !== 0) throw new Error(stderr.toString());
});
afterAll(() => rmSync(bundle, { recursive: true, force: true }));

const demo = { backends: [{ name: "a", type: "demo" }] };
const backends: FakeBackend[] = [];
afterAll(() => {
  for (const backend of backends) backend.stop();
});

function startBackend(models = ["m"], answer = chatStream(["one ", "two"])): FakeBackend {
  const backend = new FakeBackend({ models, answer });
  backends.push(backend);
  return backend;
}

const start = (options: Partial<AgentProcessOptions> = {}) =>
  new AgentProcess({ command: SCRIPTED, ...(options.folder === undefined && { config: demo }), ...options });

/** Sockets that a process listens on, from /proc. */
function listeners(pid: number): string[] {
  const inodes = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
      } catch {
        return [];
      }
    }),
  );
  return ["tcp", "tcp6"].flatMap((name) =>
    readFileSync(`/proc/${pid}/net/${name}`, "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === "0A" && inodes.has(fields[9] as string))
      .map((fields) => fields[1] as string),
  );
}

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}

test("an answer comes through the gateway's pipeline, and no address is opened", async () => {
  const backend = startBackend();
  await using agent = start({ config: { backends: [{ name: "b", type: "vllm", url: backend.url }] } });
  expect(await agent.ask({ ask: "models" })).toMatchObject([{ id: "m", name: "m" }]);
  expect(await agent.ask({ ask: "generate", model: "m" })).toBe("one two");
  expect(listeners(agent.pid)).toEqual([]);
  agent.endInput();
  expect(await agent.finished()).toBe(0);
  expect(agent.lines.at(-1)).toEqual({ stopped: true });
});

test("a route is offered as a model, and answers by its target", async () => {
  const backend = startBackend();
  const routes = [{ name: "smart", targets: [{ model: "m" }] }];
  await using agent = start({ config: { backends: [{ name: "b", type: "vllm", url: backend.url }], routes } });
  expect(await agent.ask({ ask: "models" })).toMatchObject([{ id: "smart", name: "smart" }, { id: "m" }]);
  expect(await agent.ask({ ask: "generate", model: "smart" })).toBe("one two");
});

test("whatever prints, only lines of the server reach standard output", async () => {
  await using agent = start();
  agent.send({ ask: "print" });
  expect(await agent.ask({ ask: "models" })).toMatchObject([{ id: "demo" }]);
  agent.endInput();
  expect(await agent.finished()).toBe(0);
  expect(agent.lines).toEqual([expect.any(Array), { stopped: true }]);
  expect(agent.stderr.match(/printed/g)?.length).toBe(10);
  expect(agent.stderr).toContain("speaking ACP");
});

describe("a start that fails says why on standard error alone", () => {
  test.each([
    [{ acp: { enabled: false } }, /^signalbox: acp\.enabled is false \(.*gateway\.yaml\); agents do not start\n$/],
    [{ backends: [{ name: "a b", type: "demo" }], retry: { max_attempts: "x" } }, /backends[\s\S]*max_attempts/],
    [{ acp: { mcp: { servers: { a__b: { command: "x" } } } } }, /two underscores/],
    [{ global_prompts: { default_file: "missing.md" } }, /global_prompts\.prompts_dir/],
  ])("%j", async (config, message) => {
    await using agent = start({ config: { ...demo, ...config } });
    expect(await agent.finished()).toBe(1);
    expect(agent.stdout).toBe("");
    expect(agent.stderr).toMatch(message);
  });

  test("what is found without a file can be wrong, too", async () => {
    await using agent = new AgentProcess({
      command: SCRIPTED,
      environment: { OPENAI_API_KEY: "sekret-key", OPENAI_BASE_URL: "nonsense" },
    });
    expect(await agent.finished()).toBe(1);
    expect(agent.stderr).toContain("what was found in the environment cannot be used");
    expect(agent.stdout).toBe('{"stopped":true}\n');
    expect(agent.stderr).not.toContain("sekret");
  });
});

test("without a file there is what is found on this machine, and nothing is written", async () => {
  const backend = startBackend(["gpt-test"]);
  await using agent = new AgentProcess({
    command: SCRIPTED,
    environment: { OPENAI_API_KEY: "sekret-key", OPENAI_BASE_URL: backend.url },
  });
  expect(await agent.ask({ ask: "models" })).toMatchObject([{ id: "gpt-test" }]);
  await waitFor("it says what it found", () => agent.stderr.includes("these backends were found"));
  agent.endInput();
  expect(await agent.finished()).toBe(0);
  expect(readdirSync(agent.folder)).toEqual(["home"]);
  expect(agent.stderr).not.toContain("sekret");
});

test("options come from the configuration, and follow an edit of the file", async () => {
  const acp = {
    max_concurrent: 3,
    storage: "file",
    permissions: { execute: "deny" },
    mcp: { servers: { files: { command: "./bin/server", env: { TOKEN: "sekret-token" }, cwd: "work" } } },
  };
  await using agent = start({ config: { ...demo, acp } });
  const { folder } = agent;
  expect(await agent.ask({ ask: "options" })).toEqual({
    maxConcurrent: 3,
    idleTimeoutMs: 3_600_000,
    storagePath: join(folder, "data/acp/sessions"),
    maxTurns: 50,
    execute: "deny",
    cwd: folder,
    mcp: {
      maxConnections: 5,
      allowedServers: [],
      spawnTimeoutMs: 10_000,
      servers: {
        files: {
          type: "stdio",
          name: "files",
          command: join(folder, "bin/server"),
          args: [],
          env: { TOKEN: "sekret-token" },
          cwd: join(folder, "work"),
        },
      },
    },
  });
  await agent.ask({ ask: "models" });
  await Bun.write(
    join(folder, "gateway.yaml"),
    JSON.stringify({ ...demo, acp: { ...acp, max_turns: 7, storage: "memory" } }),
  );
  await waitFor(
    "the edit is followed",
    async () => ((await agent.ask({ ask: "options" })) as { maxTurns: number }).maxTurns === 7 || undefined,
  );
  // Where sessions are kept is read at the start.
  expect(await agent.ask({ ask: "options" })).toMatchObject({ storagePath: join(folder, "data/acp/sessions") });
  const restart = "acp.storage was changed; it takes effect after a restart";
  await waitFor("it is told", () => agent.stderr.includes(restart));
  expect(agent.stderr).not.toContain("sekret");
});

describe("beside a gateway", () => {
  test("agents share its data folder: its changes count, and nothing of it is touched", async () => {
    const backend = startBackend();
    const config = {
      backends: [{ name: "b", type: "vllm" as const, url: backend.url, models: ["m"] }],
      admin: { stats: { persistence: { snapshot_interval: "1h" } } },
    };
    const gateway = await bed.process({ config });
    const patch = (path: string, body: unknown) =>
      gateway.fetch(path, {
        method: "PATCH",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
    expect(await (await gateway.chat({ stream: true })).text()).toContain("[DONE]");
    expect((await patch("/admin/config/acp", { max_turns: 11 })).status).toBe(200);

    const data = join(gateway.folder, "data");
    await using one = start({ folder: gateway.folder });
    await using other = start({ folder: gateway.folder });
    for (const agent of [one, other]) {
      expect(await agent.ask({ ask: "options" })).toMatchObject({ maxTurns: 11 });
      expect(await agent.ask({ ask: "generate", model: "m" })).toBe("one two");
    }
    expect((await patch("/admin/config/acp", { max_turns: 12 })).status).toBe(200);
    await waitFor(
      "the change is followed",
      async () => ((await one.ask({ ask: "options" })) as { maxTurns: number }).maxTurns === 12 || undefined,
    );

    const session = {
      sessionId: "7b1c",
      createdAt: "2026-01-01T00:00:00.000Z",
      updatedAt: "2026-01-01T00:00:00.000Z",
      mode: "code",
      model: "m",
      historyLength: 0,
      isBusy: false,
    };
    one.send({ ask: "sessions", sessions: [session] });
    other.send({ ask: "sessions", sessions: [{ ...session, sessionId: "other" }] });
    const listed = async () => {
      const { sessions } = (await (await gateway.fetch("/admin/acp/sessions")).json()) as {
        sessions: { sessionId: string }[];
      };
      return sessions.map(({ sessionId }) => sessionId).sort();
    };
    await waitFor("both are listed", async () => (await listed()).join() === "7b1c,other" || undefined);
    other.kill("SIGKILL");
    await other.finished();
    expect(await listed()).toEqual(["7b1c"]);
    one.endInput();
    expect(await one.finished()).toBe(0);
    expect(await listed()).toEqual([]);

    expect(existsSync(join(data, "stats.json"))).toBe(false);
    const { total } = (await (await gateway.fetch("/admin/requests")).json()) as { total: number };
    expect(total).toBe(1);
    const stats = (await (await gateway.fetch("/admin/stats")).json()) as Record<string, unknown>;
    expect(JSON.stringify(stats)).toContain('"total_requests":1');
    expect(await gateway.stop()).toBe(0);
    expect(readdirSync(join(data, "acp", "running"))).toEqual([]);
    expect(statSync(join(data, "acp", "running")).mode & 0o777).toBe(0o700);
  });

  test("agents leave batches and replays of recorded requests to the gateway", async () => {
    const backend = startBackend(["m"], chat("hello"));
    const config = { ...recordingConfig(backend), server: { shutdown_timeout: "1s" } };
    const gateway = await bed.process({ config });
    const admin = new AdminClient(gateway);
    const asked = await ask(gateway, "again?");
    await asked.text();
    await recordingOf(admin, ownIdOf(asked));
    const line = batchLine("one", { body: { model: "m", messages: [{ role: "user", content: "in a batch" }] } });
    const client = openaiClient(gateway);
    const earlier = await createBatch(client, [line]);
    expect(await whenEnded(client, earlier.id)).toMatchObject({ status: "completed" });
    backend.answer = { hang: true };
    const { id } = await admin.ok("POST", "/admin/replays", { recordings: ownIdOf(asked), model: "m" });
    await waitFor("the replay is under way", () => backend.requests.length === 3);
    await gateway.stop();

    backend.answer = chatStream(["one ", "two"]);
    await using agent = start({ folder: gateway.folder });
    expect(await agent.ask({ ask: "generate", model: "m" })).toBe("one two");
    expect(backend.requests).toHaveLength(4);
    backend.answer = chat("hello");
    // The agent has neither taken the replay nor a lock of the folder.
    await gateway.restart();
    await waitFor("the replay is over", async () => {
      return (await admin.get(`/admin/replays/${id}`)).status === "completed";
    });
    const later = await createBatch(openaiClient(gateway), [line]);
    expect(await whenEnded(openaiClient(gateway), later.id)).toMatchObject({ status: "completed" });
    agent.endInput();
    expect(await agent.finished()).toBe(0);
  }, 60_000);
});

test("the admin API says what the agent is", async () => {
  const gateway = await bed.gateway({ config: { backends: [], acp: { enabled: false } } });
  const read = async (path: string) => (await (await gateway.fetch(`/admin/acp/${path}`)).json()) as unknown;
  const capabilities = { loadSession: true, mcp: true };
  expect(await read("status")).toMatchObject({ enabled: false, transport: "stdio", capabilities });
  expect(await read("sessions")).toEqual({ sessions: [], total: 0 });
  expect(await read("agent.json")).toEqual({
    name: "signalbox",
    displayName: "Signalbox",
    version: VERSION,
    description: expect.any(String),
    transport: [{ type: "stdio" }],
    capabilities,
  });
});

test("the admin API shows no secret of a tool server, and brings no command in", async () => {
  const servers = { files: { command: "server", env: { TOKEN: "sekret-of-a-tool" } } };
  const gateway = await bed.gateway({ config: { backends: [], acp: { mcp: { servers } } } });
  const change = (method: string, path: string, body: unknown) =>
    gateway.fetch(path, {
      method,
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  const read = async () => (await (await gateway.fetch("/admin/config/acp")).json()) as { config: object };
  const { config } = await read();
  expect(config).toMatchObject({ mcp: { servers: { files: { command: "server", env: { TOKEN: "********" } } } } });
  for (const evil of [
    { mcp: { servers: { evil: { command: "sh" } } } },
    { mcp: { servers: { files: { args: ["-c"] } } } },
    { permissions: { execute: "allow" } },
  ]) {
    const refused = await change("PATCH", "/admin/config/acp", evil);
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("configuration file")]);
  }
  const imported = await change("POST", "/admin/config/import", {
    content: JSON.stringify({ acp: { mcp: { servers: { evil: { command: "sh" } } } } }),
    format: "json",
  });
  // What only the file may set is left out of an import.
  expect([imported.status, await imported.text()]).toEqual([200, expect.stringContaining("acp.mcp")]);
  expect((await read()).config).toEqual(config);
  expect((await change("PUT", "/admin/config/acp", { ...config, max_turns: 3 })).status).toBe(200);
  expect((await read()).config).toEqual({ ...config, max_turns: 3 });
  for (const path of ["/admin/config/full", "/admin/config/export", "/admin/config/history", "/admin/config/acp"]) {
    const init = path.endsWith("export") ? { method: "POST", body: '{"format":"yaml"}' } : {};
    expect(await (await gateway.fetch(path, init)).text()).not.toContain("sekret");
  }
  await using agent = start({ folder: gateway.folder });
  expect(await agent.ask({ ask: "options" })).toMatchObject({
    maxTurns: 3,
    mcp: { servers: { files: { env: { TOKEN: "sekret-of-a-tool" } } } },
  });
});

describe("the streams", () => {
  test("an editor that does not read costs no memory, and gets everything when it does", async () => {
    await using agent = start();
    await agent.ask({ ask: "echo" });
    await agent.ask({ ask: "models" });
    const before = residentBytes(agent.pid);
    agent.stopReading();
    agent.send({ ask: "flood", count: 40_000 });
    await Bun.sleep(500);
    expect(residentBytes(agent.pid)).toBeLessThan(before + 20_000_000);
    agent.readOn();
    await waitFor("all of it comes", () => agent.stdout.slice(-2_000).includes('"n":39999,') || undefined);
    agent.endInput();
    expect(await agent.finished()).toBe(0);
    const numbers = agent.lines.slice(2, -1).map((line) => (line as { n: number }).n);
    expect(numbers).toEqual(Array.from({ length: 40_000 }, (_, n) => n));
  });

  test("a server that is behind reads no further", async () => {
    await using agent = start();
    await agent.ask({ ask: "echo" });
    expect(await agent.ask({ ask: "pause" })).toEqual({ paused: true });
    let taken = 0;
    const piece = `${" ".repeat(65_535)}\n`;
    const feeding = (async () => {
      for (; taken < 1_000; taken++) await agent.sendText(piece);
    })();
    await Promise.race([feeding, Bun.sleep(500)]);
    expect(taken).toBeLessThan(100);
  });

  test("an editor that closes its end of standard output ends the agent quietly", async () => {
    const agent = Bun.spawn(["sh", "-c", `sh ${SCRIPTED.join(" ")} | head -n 1; exit 0`], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
      env: { PATH: process.env.PATH ?? "", HOME: "/nonexistent" },
    });
    agent.stdin.write('{"ask":"echo"}\n{"ask":"flood","count":1000}\n');
    await agent.stdin.flush();
    expect(await agent.exited).toBe(0);
    expect(await new Response(agent.stdout).text()).toBe('{"echo":true}\n');
    expect(await new Response(agent.stderr).text()).not.toMatch(/EPIPE|unhandled/i);
  });

  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("%s stops it in order", async (signal) => {
    await using agent = start();
    await agent.ask({ ask: "models" });
    agent.kill(signal);
    expect(await agent.finished()).toBe(0);
    expect(agent.lines.at(-1)).toEqual({ stopped: true });
  });

  test("no input at all is an end", async () => {
    await using agent = start();
    agent.endInput();
    expect(await agent.finished()).toBe(0);
    expect(agent.lines).toEqual([{ stopped: true }]);
  });
});

test("a prompt right at the start waits for the first health checks, and no longer", async () => {
  const [slow, quick] = [startBackend(["slow"]), startBackend(["m"])];
  slow.stop();
  await using agent = start({
    config: {
      backends: [
        { name: "gone", type: "vllm", url: slow.url },
        { name: "here", type: "vllm", url: quick.url },
      ],
    },
  });
  expect(await agent.ask({ ask: "generate", model: "m" })).toBe("one two");
  expect(await agent.ask({ ask: "models" })).toMatchObject([{ id: "m" }]);
});

test("models: what chats, the default first, with what is known of them", async () => {
  const backend = startBackend(["text-embedding-3-small", "gpt-5.2", "gpt-4o", "my-reasoner", "dall-e-3", "o3"]);
  const metadata = { display_name: "Mine", capabilities: ["chat", "reasoning"], limits: { context_window: 4_096 } };
  await using agent = start({
    config: {
      backends: [{ name: "o", type: "openai", url: backend.url, model_configs: [{ id: "my-reasoner", metadata }] }],
      acp: { model: "my-reasoner" },
    },
  });
  const models = (await agent.ask({ ask: "models" })) as { id: string; efforts: string[]; images: boolean }[];
  expect(models.map(({ id }) => id)).toEqual(["my-reasoner", "gpt-5.2", "gpt-4o", "o3"]);
  expect(models[0]).toMatchObject({ name: "Mine", images: false });
  expect(models[1]?.efforts).toEqual(["none", "low", "medium", "high", "xhigh"]);
  expect(models[2]).toMatchObject({ efforts: [], images: true });
  expect(models[3]?.efforts).toEqual(["low", "medium", "high"]);
  expect(await agent.ask({ ask: "window", model: "my-reasoner" })).toBe(4_096);
});
