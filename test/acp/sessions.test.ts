// Many sessions of one process: none waits for another, and a turn ends at once when it is cancelled.

import { afterEach, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { FakeBackend, type Responder } from "../support/fake-backend.ts";
import { type ScriptedAnswer, scriptedAnswer, scriptedTurns } from "../support/scripted-turns.ts";
import { waitFor } from "../support/wait-for.ts";
import { type Message, WatchedAgent } from "../support/watched-agent.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(answer: Responder, more: ConfigDocument = {}) {
  const backend = new FakeBackend({ models: ["m"], answer });
  cleanups.push(() => backend.stop());
  const config = { backends: [{ name: "gpu", type: "vllm", url: backend.url }], ...more };
  const agent = new WatchedAgent({ config });
  cleanups.push(() => agent.close());
  await agent.ask("initialize", {
    protocolVersion: 1,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
  });
  return { backend, agent, config };
}

async function newSession(agent: WatchedAgent): Promise<string> {
  const { result } = await agent.ask("session/new", { cwd: agent.folder, mcpServers: [] });
  return (result as { sessionId: string }).sessionId;
}

const prompt = (agent: WatchedAgent, sessionId: string, text: string, id?: unknown) =>
  agent.ask("session/prompt", { sessionId, prompt: [{ type: "text", text }] }, id);

const textOf = (agent: WatchedAgent, sessionId: string) =>
  agent
    .updates(sessionId)
    .flatMap(({ sessionUpdate, content }) =>
      sessionUpdate === "agent_message_chunk" ? [(content as { text: string }).text] : [],
    )
    .join("");

const WRITE: ScriptedAnswer = { calls: [{ name: "write_text_file", arguments: { path: "new.txt", content: "x" } }] };

/** The agent's request that waits for the person. */
async function question(agent: WatchedAgent): Promise<Message> {
  const asked = () =>
    agent.traffic.find(({ from, message }) => from === "agent" && message.method === "session/request_permission");
  // The diff of the file is asked for first; there is none.
  agent.listen((message) => {
    if (message.method === "fs/read_text_file")
      agent.send({ jsonrpc: "2.0", id: message.id, error: { code: -32002, message: "not found" } });
  });
  await waitFor("a question", () => asked() !== undefined);
  return asked()?.message as Message;
}

test("ten sessions answer while one waits for the person", async () => {
  const { agent } = await start((request) =>
    request.text.includes("be stuck") ? scriptedAnswer(WRITE, "w") : scriptedAnswer({ text: "Here I am." }, "t"),
  );
  const stuck = await newSession(agent);
  const waiting = prompt(agent, stuck, "be stuck", "stuck");
  const asked = await question(agent);
  const others = await Promise.all(Array.from({ length: 9 }, () => newSession(agent)));
  const answers = await Promise.all(others.map((sessionId) => prompt(agent, sessionId, "hello")));
  expect(answers.map(({ result }) => (result as { stopReason: string }).stopReason)).toEqual(
    others.map(() => "end_turn"),
  );
  for (const sessionId of others) expect(textOf(agent, sessionId)).toBe("Here I am.");
  // The eleventh is one too many.
  const { error } = await agent.ask("session/new", { cwd: agent.folder, mcpServers: [] });
  expect(error).toMatchObject({ code: -32001 });

  agent.send({ jsonrpc: "2.0", method: "session/cancel", params: { sessionId: stuck } });
  expect((await waiting).result).toMatchObject({ stopReason: "cancelled" });
  expect(asked.id).toBeDefined();
});

describe("a cancelled turn", () => {
  test("waiting for the model ends, frees the backend, and the session goes on", async () => {
    let isFirst = true;
    const { agent, backend } = await start(() => {
      if (!isFirst) return scriptedAnswer({ text: "again" }, "b");
      isFirst = false;
      return { hang: true };
    });
    const sessionId = await newSession(agent);
    const waiting = prompt(agent, sessionId, "think");
    await waitFor("the backend is asked", () => backend.requests.length === 1);
    agent.send({ jsonrpc: "2.0", method: "session/cancel", params: { sessionId } });
    expect((await waiting).result).toMatchObject({ stopReason: "cancelled" });
    await waitFor("the backend is free", () => backend.requests[0]?.isClosed === true);
    expect((await prompt(agent, sessionId, "once more")).result).toMatchObject({ stopReason: "end_turn" });
    expect(textOf(agent, sessionId)).toBe("again");
  });

  test("by the request's id is over as well", async () => {
    const { agent, backend } = await start({ hang: true });
    const sessionId = await newSession(agent);
    const waiting = prompt(agent, sessionId, "think", 0);
    await waitFor("the backend is asked", () => backend.requests.length === 1);
    agent.send({ jsonrpc: "2.0", method: "$/cancel_request", params: { requestId: 0 } });
    const { result, error } = await waiting;
    const told = (result as { stopReason?: string } | undefined)?.stopReason ?? (error as { code: number }).code;
    expect(["cancelled", -32800]).toContain(told);
  });
});

test.each(["the editor's end", "SIGTERM"])(
  "a command that runs is killed and its terminal released at %s",
  async (end) => {
    const run: ScriptedAnswer = { calls: [{ name: "list_directory", arguments: {} }] };
    const { agent } = await start(scriptedTurns([run]));
    const heard: unknown[] = [];
    agent.listen(({ id, method }) => {
      if (method?.startsWith("terminal/")) heard.push(method);
      if (method === "terminal/create") agent.send({ jsonrpc: "2.0", id, result: { terminalId: "t" } });
    });
    const sessionId = await newSession(agent);
    const waiting = prompt(agent, sessionId, "look");
    await waitFor("it runs", () => heard.includes("terminal/wait_for_exit"));
    if (end === "SIGTERM") agent.kill("SIGTERM");
    else agent.closeInput();
    expect((await waiting).result).toMatchObject({ stopReason: "cancelled" });
    expect(await agent.exited()).toBe(0);
    expect(heard.slice(-2)).toEqual(["terminal/kill", "terminal/release"]);
  },
);

describe("a session in a file", () => {
  const acp = { storage: "file" } as const;

  test("is told again by the next process", async () => {
    const { agent, backend, config } = await start(scriptedTurns([{ text: "The answer is 42." }]), { acp });
    const sessionId = await newSession(agent);
    await prompt(agent, sessionId, "What is the answer?");
    agent.closeInput();
    expect(await agent.exited()).toBe(0);
    backend.answer = scriptedTurns([{ text: "Still 42." }]);

    const next = new WatchedAgent({ config, folder: agent.folder });
    cleanups.push(() => next.close());
    await next.ask("initialize", { protocolVersion: 1, clientCapabilities: {} });
    const { result: listed } = await next.ask("session/list", {});
    expect((listed as { sessions: unknown[] }).sessions).toMatchObject([{ sessionId, cwd: agent.folder }]);
    const { result } = await next.ask("session/load", { sessionId, cwd: agent.folder, mcpServers: [] });
    expect(result).toMatchObject({ sessionId });
    expect(next.updates(sessionId).map(({ sessionUpdate }) => sessionUpdate)).toEqual(
      expect.arrayContaining(["user_message_chunk", "agent_message_chunk"]),
    );
    expect(textOf(next, sessionId)).toBe("The answer is 42.");
    await prompt(next, sessionId, "And now?");
    expect(backend.requests.at(-1)?.text).toContain("The answer is 42.");
  });

  test("is whole however the process ends", async () => {
    const { agent, config } = await start(() => scriptedAnswer({ text: "yes ".repeat(200) }, "y"), { acp });
    const sessionId = await newSession(agent);
    await prompt(agent, sessionId, "first");
    const waiting = prompt(agent, sessionId, "second").catch(() => {});
    agent.kill("SIGKILL");
    await agent.exited();
    void waiting;
    const next = new WatchedAgent({ config, folder: agent.folder });
    cleanups.push(() => next.close());
    await next.ask("initialize", { protocolVersion: 1, clientCapabilities: {} });
    const { result, error } = await next.ask("session/load", { sessionId, cwd: agent.folder, mcpServers: [] });
    expect(error).toBeUndefined();
    expect(result).toMatchObject({ sessionId });
    expect(next.updates(sessionId).length).toBeGreaterThan(1);
    expect(readdirSync(join(agent.folder, "data")).length).toBeGreaterThan(0);
  });
});
