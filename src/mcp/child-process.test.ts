// MCP servers as child processes: what passes, what they get, and that nothing of them is left.

import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { groupMembers, isAlive } from "../../test/support/process-groups.ts";
import { waitFor, within } from "../../test/support/wait-for.ts";
import type { JsonObject } from "../lib/json.ts";
import { type ProcessSpec, type ServerProcess, startServerProcess } from "./child-process.ts";
import { maskingOf } from "./masked.ts";

const SERVER = join(import.meta.dir, "../../test/support/mcp/bad-server.ts");
const started: ServerProcess[] = [];

afterEach(async () => {
  await Promise.all(started.map((server) => server.close()));
  for (const { pid } of started.splice(0)) expect(groupMembers(pid)).toEqual([]);
});

interface StartOptions extends Partial<ProcessSpec> {
  killAfterMs?: number;
  receive?: (message: JsonObject) => void | Promise<void>;
}

function start(traits: string[], { killAfterMs = 300, receive, ...spec }: StartOptions = {}) {
  const messages: JsonObject[] = [];
  const log: string[] = [];
  const whole = { name: "bad", command: process.execPath, args: [SERVER, ...traits], env: {}, cwd: tmpdir(), ...spec };
  const server = startServerProcess(whole, {
    receive: receive ?? ((message) => void messages.push(message)),
    mask: maskingOf(Object.values(whole.env)),
    log: (level, message) => log.push(`${level} ${message}`),
    killAfterMs,
  });
  started.push(server);
  const answerTo = (id: number) => waitFor(`an answer to ${id}`, () => messages.find((message) => message.id === id));
  const call = (id: number, name: string, args: object = {}) =>
    server.send({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } });
  return { server, messages, log, answerTo, call };
}

describe("messages", () => {
  test("pass in both directions, also when a character is cut in two and when they are large", async () => {
    const { answerTo, call } = start([]);
    const text = `grüße ${"€".repeat(400_000)} 🙂`;
    await call(1, "echo", { text });
    expect(await answerTo(1)).toEqual({ jsonrpc: "2.0", id: 1, result: { content: [{ type: "text", text }] } });
  });

  test("that are none are logged and skipped", async () => {
    const { log, answerTo, call } = start(["garbage"]);
    await call(1, "echo", { text: "still here" });
    expect(await answerTo(1)).toMatchObject({ result: { content: [{ text: "still here" }] } });
    expect(log[0]).toBe("warn MCP server bad: a line that is no JSON-RPC message, skipped: Welcome to the server!");
    expect(log.length).toBe(6);
    for (const line of log) expect(line.length).toBeLessThan(400);
  });

  test("that are too long are skipped, and what follows is read", async () => {
    const { log, answerTo, call } = start(["huge-line"]);
    await call(1, "echo", { text: "after" });
    expect(await answerTo(1)).toMatchObject({ result: { content: [{ text: "after" }] } });
    expect(log).toEqual([expect.stringContaining("a line of more than 33554432 bytes")]);
  });

  test("wait for a receiver that has no room, and none is lost", async () => {
    const room = Promise.withResolvers<void>();
    const got: JsonObject[] = [];
    const { server } = start([], {
      receive(message) {
        got.push(message);
        return got.length === 1 ? room.promise : undefined;
      },
    });
    const flood = { name: "flood", arguments: { count: 60_000 } };
    await server.send({ jsonrpc: "2.0", id: 1, method: "tools/call", params: flood });
    await waitFor("the first message", () => got.length > 0);
    await Bun.sleep(200);
    expect(got.length).toBe(1);
    room.resolve();
    await waitFor("all messages", () => got.length === 60_001);
    expect(got[60_000]).toMatchObject({ id: 1, result: { content: [{ text: "60000 sent" }] } });
    expect(got[59_999]).toMatchObject({ params: { data: 59_999 } });
  });

  test("reach a server that reads slowly, in order", async () => {
    const { messages, call, answerTo } = start(["slow-reader"]);
    const text = "x".repeat(200_000);
    await Promise.all([1, 2, 3, 4, 5].map((id) => call(id, "echo", { text })));
    await answerTo(5);
    expect(messages.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5]);
  });

  test("to a server that never reads are refused when too much waits, and end with it", async () => {
    const { server, call } = start(["never-read"]);
    const text = "x".repeat(20 * 1024 * 1024);
    const waiting = [1, 2, 3].map((id) => call(id, "echo", { text }).then(() => "sent", String));
    expect(await call(4, "echo", { text }).then(() => "sent", String)).toContain("does not read its input");
    await server.close();
    for (const outcome of await within("the others end", Promise.all(waiting))) expect(outcome).toContain("has ended");
    expect(await call(5, "echo").then(() => "sent", String)).toContain("has ended");
  });
});

/** Of a server that sleeps, as soon as it does: at its start it has a name for a moment, and no environment yet. */
function environmentOf({ pid }: ServerProcess): Promise<string[]> {
  return waitFor("the server runs", () => {
    if (readFileSync(`/proc/${pid}/comm`, "utf8") !== "sleep\n") return undefined;
    const lines = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
    return lines.length > 1 ? lines.filter((line) => line !== "") : undefined;
  });
}

describe("the environment", () => {
  test("is PATH, HOME, LANG and what is named, and nothing else", async () => {
    process.env.UPSTREAM_API_KEY = "sekret-of-the-gateway";
    try {
      const env = {
        TOKEN: "sekret-1",
        EMPTY: "",
        "npm_config_//registry/:_token": "sekret-2",
        SHLVL: "7",
        "a-b.c": "=x=\ny",
      };
      for (const named of [{}, { TOKEN: "sekret-1" }, env] as Record<string, string>[]) {
        const { server } = start([], { command: "sleep", args: ["1000"], env: named });
        const expected: Record<string, string> = { ...named };
        for (const key of ["PATH", "HOME", "LANG"])
          if (process.env[key] !== undefined) expected[key] = process.env[key];
        expect((await environmentOf(server)).sort()).toEqual(
          Object.entries(expected)
            .map(([key, value]) => `${key}=${value}`)
            .sort(),
        );
      }
    } finally {
      delete process.env.UPSTREAM_API_KEY;
    }
  });

  test("is not what the person's shell makes of it", async () => {
    const HOME = mkdtempSync(join(tmpdir(), "mcp-home-"));
    writeFileSync(join(HOME, ".bashrc"), "echo printed >&2; export ADDED=1\n");
    const { server, log } = start([], { command: "sleep", args: ["1000"], env: { HOME, "a-b": "1" } });
    expect(await environmentOf(server)).not.toContain("ADDED=1");
    expect(log).toEqual([]);
  });

  test("values of it are masked in what the server prints", async () => {
    const { server, log } = start(["fail-at-once"], { env: { LICENCE: "sekret-in-environment" } });
    expect(await server.ended).toBe("exited with code 3");
    expect(log).toEqual(["warn MCP server bad: no licence found: ***"]);
  });
});

describe("starting", () => {
  test.each([
    ["no-such-program-here", "the command no-such-program-here was not found in PATH, or may not be run"],
    ["/no/such/program", "the command /no/such/program was not found, or may not be run"],
    ["/tmp", "the command /tmp was not found, or may not be run"],
    ["", "the command  was not found in PATH, or may not be run"],
  ])("a command that is not there (%s) is named", (command, message) => {
    expect(() => start([], { command })).toThrow(`MCP server bad cannot start: ${message}`);
  });

  test("a folder that is not there is named", () => {
    expect(() => start([], { cwd: "/no/such/folder" })).toThrow("its folder /no/such/folder does not exist");
  });

  test("a script relative to the folder, and arguments with anything in them", async () => {
    const folder = mkdtempSync(join(tmpdir(), "mcp=script-"));
    writeFileSync(join(folder, "run me.sh"), `#!/bin/sh\nprintf '%s\\n' "$@" "$PWD" >out\n`, { mode: 0o755 });
    const args = ["a b", "$HOME", "'\"`x`", "--", "", "x=y", "ü\n"];
    const { server } = start([], { command: "./run me.sh", args, cwd: folder });
    expect(await server.ended).toBe("exited with code 0");
    expect(readFileSync(join(folder, "out"), "utf8")).toBe(`${[...args, folder].join("\n")}\n`);
  });
});

describe("the end", () => {
  test("of a server that behaves comes with SIGTERM, quickly", async () => {
    const { server, answerTo, call } = start([], { killAfterMs: 60_000 });
    await call(1, "echo", { text: "up" });
    await answerTo(1);
    await within("it is closed", server.close());
    expect(await server.ended).toMatch(/^was ended by SIGTERM|^exited with code/);
  });

  test("of one that ignores everything and has children comes with SIGKILL, theirs too", async () => {
    const { server, log } = start(["ignore-term", "ignore-end", "fork"]);
    const told = await waitFor("a grandchild", () => log.find((line) => line.includes("grandchild ")));
    const grandchild = Number(told.split("grandchild ")[1]);
    expect(isAlive(grandchild)).toBe(true);
    expect(groupMembers(server.pid)).toContain(grandchild);
    await within("it is closed", server.close());
    expect(isAlive(grandchild)).toBe(false);
    expect(groupMembers(server.pid)).toEqual([]);
    expect(await server.ended).toBe("was ended by SIGKILL");
  });

  test("that a server finds itself takes its children along", async () => {
    const { server, log, call } = start(["fork"]);
    const told = await waitFor("a grandchild", () => log.find((line) => line.includes("grandchild ")));
    await call(1, "die");
    expect(await within("it has ended", server.ended)).toBe("exited with code 7");
    expect(isAlive(Number(told.split("grandchild ")[1]))).toBe(false);
    expect(groupMembers(server.pid)).toEqual([]);
  });

  test("a child that still works when its parent has ended has the rest of the time", async () => {
    const folder = mkdtempSync(join(tmpdir(), "mcp-rest-"));
    const script = `(trap 'sleep 0.3; echo saved >saved; exit' TERM; echo ready >&2; while :; do sleep 0.05; done) & trap 'exit 0' TERM; wait`;
    const { server, log } = start([], { command: "sh", args: ["-c", script], cwd: folder, killAfterMs: 10_000 });
    await waitFor("it is ready", () => log.length > 0);
    await server.close();
    expect(readFileSync(join(folder, "saved"), "utf8")).toBe("saved\n");
  });

  test("leaves no descriptor behind", async () => {
    const count = () => readdirSync("/proc/self/fd").length;
    const round = () => start([], { command: "sleep", args: ["1000"] }).server.close();
    await round();
    const before = count();
    for (let rounds = 0; rounds < 30; rounds++) await round();
    await waitFor("all are closed", () => count() <= before + 1);
  });
});

test("the guard and the server hold nothing that is not theirs", async () => {
  const one = start([], { command: "sleep", args: ["1000"] });
  const two = start([], { command: "sleep", args: ["1000"] });
  await waitFor("both run with their guards", () =>
    [one, two].every(
      ({ server }) =>
        groupMembers(server.pid).length === 2 && readFileSync(`/proc/${server.pid}/comm`, "utf8") === "sleep\n",
    ),
  );
  const held = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;
  for (const { server } of [one, two]) {
    for (const pid of groupMembers(server.pid)) expect(held(pid)).toBeLessThanOrEqual(pid === server.pid ? 3 : 5);
  }
  await one.server.close();
  expect(groupMembers(two.server.pid).length).toBe(2);
});
