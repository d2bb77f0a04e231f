// The official client library of ACP speaks with the agent's side, and takes every message for valid.

import { afterAll, expect, spyOn, test } from "bun:test";
import { type ClientConnection, type ContentBlock, client, ndJsonStream } from "@agentclientprotocol/sdk";
import type { AcpOptions } from "../../src/acp/parts.ts";
import { createAcpServer } from "../../src/acp/server.ts";
import type { TurnEnd, TurnParts } from "../../src/agent/agent.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { silentLogger } from "../../src/logging/logger.ts";
import { add, MODELS } from "../support/acp-bed.ts";
import { complaintsOf, type Said } from "../support/acp-validator.ts";

const OPTIONS: AcpOptions = {
  maxConcurrent: 20,
  idleTimeoutMs: 60_000,
  storagePath: undefined,
  maxTurns: 10,
  permission: () => "ask",
  mcp: { maxConnections: 5, allowedServers: [], spawnTimeoutMs: 1_000, servers: {} },
};

const opened: { stop(): Promise<void> }[] = [];

function recorder(traffic: Said[], from: Said["from"]): TransformStream<Uint8Array, Uint8Array> {
  let rest = "";
  const decoder = new TextDecoder();
  return new TransformStream({
    transform(bytes, controller) {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) traffic.push({ from, message: JSON.parse(line) });
      controller.enqueue(bytes);
    },
  });
}

/** The agent at the other end of two streams. */
function agentStreams(runTurn: (parts: TurnParts) => Promise<TurnEnd>, traffic: Said[]) {
  const toAgent = recorder(traffic, "client");
  const toClient = recorder(traffic, "agent");
  const writer = toClient.writable.getWriter();
  const models = { offered: async () => MODELS, contextWindow: () => undefined, generate: async function* () {} };
  const server = createAcpServer(
    {
      options: () => OPTIONS,
      models,
      clock: systemClock,
      log: silentLogger(),
      cwd: "/",
      write: (line) => writer.write(line),
      sessionsChanged() {},
    },
    { runTurn },
  );
  opened.push(server);
  const read = async () => {
    for await (const bytes of toAgent.readable) await server.receive(bytes);
  };
  read().catch(() => {});
  return ndJsonStream(toAgent.writable, toClient.readable);
}

const traffic: Said[] = [];
const errors = spyOn(console, "error");
const written = new Map<string, string>([["/project/a.ts", "let a;"]]);
const terminals: string[] = [];
let createdTerminals = 0;

const app = client({ name: "test" })
  .onRequest("fs/read_text_file", ({ params }) => ({ content: written.get(params.path) ?? "" }))
  .onRequest("fs/write_text_file", ({ params }) => {
    written.set(params.path, params.content);
    return {};
  })
  .onRequest("session/request_permission", ({ params }) => {
    const option = params.options.find(({ kind }) => kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: option?.optionId ?? "" } };
  })
  .onRequest("terminal/create", () => ({ terminalId: `t${++createdTerminals}` }))
  .onRequest("terminal/wait_for_exit", () => ({ exitCode: 0 }))
  .onRequest("terminal/output", () => ({ output: "ok", truncated: false, exitStatus: { exitCode: 0 } }))
  .onRequest("terminal/release", ({ params }) => {
    terminals.push(params.terminalId);
    return {};
  });

/** Reads, asks, writes, runs, and answers with all that it has seen. */
async function workingTurn(parts: TurnParts): Promise<TurnEnd> {
  const { editor, signal, prompt } = parts;
  add(parts, { role: "user", parts: prompt });
  const [first] = prompt;
  if (first?.type === "text" && first.text === "wait") {
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  }
  editor.tell({ type: "thought", text: "I read it." });
  const path = "/project/a.ts";
  const call = {
    toolCallId: "c1",
    title: "Edit a.ts",
    kind: "edit",
    status: "pending",
    content: [],
    locations: [{ path }],
  } as const;
  const view = { ...call, content: [], locations: [{ path, line: 1 }], rawInput: { path } };
  const before = await editor.readTextFile({ path }, signal);
  editor.tell({ type: "tool-call", call: view });
  const permission = await editor.askPermission(view, signal);
  editor.tell({ type: "tool-call-change", toolCallId: "c1", change: { status: "in_progress" } });
  await editor.writeTextFile({ path, content: `${before}!` }, signal);
  const terminal = await editor.runCommand({ command: "bun", args: ["test"] }, signal);
  await terminal.exited(signal);
  const { output } = await terminal.output(signal);
  await terminal.release();
  const content = [{ type: "diff", path, oldText: before, newText: `${before}!` } as const];
  editor.tell({ type: "tool-call-change", toolCallId: "c1", change: { status: "completed", content } });
  editor.tell({ type: "plan", entries: [{ content: "Edit", priority: "high", status: "completed" }] });
  editor.tell({ type: "usage", used: 10, size: 100 });
  editor.tell({ type: "notice", text: "Old results were shortened." });
  editor.tell({
    type: "image",
    part: { type: "image", source: { kind: "base64", mediaType: "image/png", data: "AAAA" } },
  });
  const text = `${permission} ${output}`;
  for (const piece of text) editor.tell({ type: "text", text: piece });
  add(parts, { role: "assistant", parts: [{ type: "text", text }] });
  return { stopReason: "end_turn", usage: { input: 5, output: 6, reasoning: 1 } };
}

const connection: ClientConnection = app.connect(agentStreams(workingTurn, traffic));
const { agent } = connection;

afterAll(async () => {
  for (const server of opened) await server.stop();
  connection.close();
  errors.mockRestore();
});

test("initialize", async () => {
  const result = await agent.request("initialize", {
    protocolVersion: 1,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
    clientInfo: { name: "test", version: "1" },
  });
  expect(result).toMatchObject({ protocolVersion: 1, agentCapabilities: { loadSession: true }, authMethods: [] });
  expect(await agent.request("authenticate", { methodId: "any" })).toEqual({});
  expect(await agent.request("logout", {})).toEqual({});
});

test("a prompt with everything: thought, permission, files, a terminal, plan, usage, picture, text", async () => {
  const session = await agent.buildSession("/project").start();
  const done = session.prompt([
    { type: "text", text: "Edit it" },
    { type: "resource_link", uri: "file:///project/a.ts", name: "a.ts" },
  ]);
  const kinds: string[] = [];
  let text = "";
  for (;;) {
    const message = await session.nextUpdate();
    if (message.kind === "stop") break;
    kinds.push(message.update.sessionUpdate);
    if (message.update.sessionUpdate === "agent_message_chunk" && message.update.content.type === "text")
      text += message.update.content.text;
  }
  expect((await done).stopReason).toBe("end_turn");
  expect(text).toBe("allow_once ok");
  expect(written.get("/project/a.ts")).toBe("let a;!");
  expect(terminals).toEqual(["t1"]);
  expect([...new Set(kinds)]).toEqual([
    "session_info_update",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "usage_update",
    "agent_message_chunk",
  ]);
  session.dispose();
});

test("modes, options, list, load, resume, close", async () => {
  const { sessionId, modes, configOptions } = await agent.request("session/new", { cwd: "/project", mcpServers: [] });
  expect(modes?.availableModes.map(({ id }) => id)).toEqual(["code", "architect", "ask"]);
  expect(configOptions?.map(({ category }) => category)).toEqual(["mode", "model", "thought_level"]);
  await agent.request("session/set_mode", { sessionId, modeId: "architect" });
  const set = await agent.request("session/set_config_option", { sessionId, configId: "model", value: "second" });
  expect(set.configOptions.map(({ id }) => id)).toEqual(["mode", "model"]);
  await agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: "Edit it" }] });
  const { sessions } = await agent.request("session/list", {});
  expect(sessions.find((each) => each.sessionId === sessionId)).toMatchObject({ cwd: "/project", title: "Edit it" });
  expect(
    (await agent.request("session/load", { sessionId, cwd: "/project", mcpServers: [] })).modes?.currentModeId,
  ).toBe("architect");
  await agent.request("session/resume", { sessionId, cwd: "/project", mcpServers: [] });
  expect(await agent.request("session/close", { sessionId })).toEqual({});
  await expect(agent.request("session/prompt", { sessionId, prompt: [] })).rejects.toMatchObject({ code: -32001 });
});

test("cancel, and taking a prompt back", async () => {
  const { sessionId } = await agent.request("session/new", { cwd: "/project", mcpServers: [] });
  const prompt: ContentBlock[] = [{ type: "text", text: "wait" }];
  const first = agent.request("session/prompt", { sessionId, prompt });
  await agent.notify("session/cancel", { sessionId });
  expect((await first).stopReason).toBe("cancelled");
  const controller = new AbortController();
  const second = agent.request("session/prompt", { sessionId, prompt }, { cancellationSignal: controller.signal });
  await Bun.sleep(20);
  controller.abort();
  expect((await second).stopReason).toBe("cancelled");
});

test("ten sessions in parallel, one of them stuck: none waits for another", async () => {
  const all = await Promise.all(
    Array.from({ length: 10 }, () => agent.request("session/new", { cwd: "/", mcpServers: [] })),
  );
  const prompts = all.map(({ sessionId }, index) =>
    agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: index === 0 ? "wait" : "go" }] }),
  );
  for (const { stopReason } of await Promise.all(prompts.slice(1))) expect(stopReason).toBe("end_turn");
  await agent.notify("session/cancel", { sessionId: all[0]?.sessionId ?? "" });
  expect((await prompts[0])?.stopReason).toBe("cancelled");
});

test("the library has complained about nothing, and neither does the validator", () => {
  expect(errors).not.toHaveBeenCalled();
  expect(complaintsOf(traffic)).toEqual([]);
  expect(traffic.length).toBeGreaterThan(100);
});
