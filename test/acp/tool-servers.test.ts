// Tool servers of a session, from the editor's side: their tools reach the model and their answers come back; a client of
// ACP speaks with one itself; and whoever dies, nothing of them stays.

import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { INSTALL_TIMEOUT_MS } from "../../scripts/npm-programs.ts";
import type { ConfigDocument } from "../../src/config/sections/registry.ts";
import { FakeBackend } from "../support/fake-backend.ts";
import { everythingCommand, startEverything } from "../support/mcp/everything.ts";
import { isAlive } from "../support/process-groups.ts";
import { scriptedTurns } from "../support/scripted-turns.ts";
import { waitFor } from "../support/wait-for.ts";
import { WatchedAgent } from "../support/watched-agent.ts";

const BAD_SERVER = join(import.meta.dir, "../support/mcp/bad-server.ts");

const cleanups: (() => unknown)[] = [];
const programs: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});
afterAll(async () => {
  await Promise.all(programs.map((program) => program.stop()));
});

async function start(acp: ConfigDocument["acp"] = {}) {
  const backend = new FakeBackend({ models: ["m"] });
  cleanups.push(() => backend.stop());
  const agent = new WatchedAgent({ config: { backends: [{ name: "gpu", type: "vllm", url: backend.url }], acp } });
  cleanups.push(() => agent.close());
  await agent.ask("initialize", { protocolVersion: 1, clientCapabilities: {} });
  return { backend, agent };
}

async function newSession(agent: WatchedAgent, mcpServers: readonly object[]): Promise<string> {
  const { result } = await agent.ask("session/new", { cwd: agent.folder, mcpServers });
  return (result as { sessionId: string }).sessionId;
}

/** Takes every question of the agent for a yes. */
function allowAll(agent: WatchedAgent): void {
  agent.listen(({ id, method }) => {
    if (method !== "session/request_permission") return;
    agent.send({ jsonrpc: "2.0", id, result: { outcome: { outcome: "selected", optionId: "allow_once" } } });
  });
}

describe.each(["stdio", "streamable HTTP"])("the reference server over %s", (transport) => {
  test(
    "has its tools called by the model",
    async () => {
      const { backend, agent } = await start();
      allowAll(agent);
      let server: object = { name: "everything", env: [], ...(await everythingCommand()) };
      if (transport !== "stdio") {
        const program = await startEverything("streamableHttp");
        programs.push(program);
        server = { type: "http", name: "everything", url: program.url, headers: [] };
      }
      backend.answer = scriptedTurns([
        { calls: [{ name: "everything__get-sum", arguments: { a: 2, b: 40 } }] },
        { calls: [{ name: "everything__get-tiny-image", arguments: {} }] },
        { text: "It is 42." },
      ]);
      const sessionId = await newSession(agent, [server]);
      const { result } = await agent.ask("session/prompt", { sessionId, prompt: [{ type: "text", text: "Add." }] });
      expect(result).toMatchObject({ stopReason: "end_turn" });
      const [first, second, third] = backend.requests.map(({ text }) => text);
      expect(first).toContain("everything__get-sum");
      expect(second).toContain("42");
      expect(third).toContain("image/png");
      const calls = agent.updates(sessionId).filter(({ sessionUpdate }) => sessionUpdate === "tool_call");
      expect(calls.map(({ kind }) => kind)).toEqual(["other", "other"]);
    },
    INSTALL_TIMEOUT_MS,
  );
});

test(
  "a client speaks with a configured server over the bridge",
  async () => {
    const { agent } = await start({ mcp: { servers: { everything: await everythingCommand() } } });
    const { result } = await agent.ask("mcp/connect", { id: "everything" });
    const { connectionId } = result as { connectionId: string };
    const send = (message: object) => agent.ask("mcp/message", { connectionId, message });
    const initialized = await send({
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
    });
    expect(initialized.result).toMatchObject({ message: { id: 1, result: { serverInfo: expect.anything() } } });
    await send({ jsonrpc: "2.0", method: "notifications/initialized" });
    const called = await send({
      jsonrpc: "2.0",
      id: "call",
      method: "tools/call",
      params: { name: "echo", arguments: { message: "hello" } },
    });
    expect(JSON.stringify(called.result)).toContain("Echo: hello");
    expect((await agent.ask("mcp/disconnect", { connectionId })).error).toBeUndefined();
    expect((await send({ jsonrpc: "2.0", id: 2, method: "ping" })).error).toMatchObject({ code: -32001 });
    expect((await agent.ask("mcp/connect", { id: "another" })).error).toMatchObject({ code: -32001 });
    expect((await agent.ask("mcp/connect", { id: "no__name" })).error).toMatchObject({ code: -32602 });
  },
  INSTALL_TIMEOUT_MS,
);

test("a server that does not work is told in the conversation, once", async () => {
  const { backend, agent } = await start();
  backend.answer = scriptedTurns([{ text: "Hello." }, { text: "Again." }]);
  const env = [{ name: "TOKEN", value: "sekret-in-environment" }];
  const broken = { name: "broken", command: process.execPath, args: [BAD_SERVER, "fail-at-once"], env };
  const sessionId = await newSession(agent, [broken]);
  const said = async () => {
    const { length } = agent.updates(sessionId);
    await agent.ask("session/prompt", { sessionId, prompt: [{ type: "text", text: "hi" }] });
    const chunks = agent.updates(sessionId).slice(length);
    return chunks
      .filter(({ sessionUpdate }) => sessionUpdate === "agent_message_chunk")
      .map(({ content }) => (content as { text: string }).text)
      .join("");
  };
  expect(await said()).toMatch(/^MCP server broken: it .*\n\nHello\.$/);
  expect(await said()).toBe("Again.");
});

describe("nothing of a server that wants to live stays", () => {
  const wantsToLive = {
    name: "deaf",
    command: process.execPath,
    args: [BAD_SERVER, "ignore-term", "ignore-end", "fork", "tell-pids"],
    env: [],
  };

  async function startWithDeafServer() {
    const started = await start();
    const { agent } = started;
    await newSession(agent, [wantsToLive]);
    const pidOf = (pattern: RegExp) => waitFor(`${pattern} is told`, () => pattern.exec(agent.stderr)?.[1]);
    return { ...started, pids: [Number(await pidOf(/pids (\d+)/)), Number(await pidOf(/grandchild (\d+)/))] };
  }

  const goneWithin = (pids: readonly number[]) =>
    waitFor("they are gone", () => pids.every((pid) => !isAlive(pid)), { intervalMs: 100 });

  test("when the editor is gone", async () => {
    const { agent, pids } = await startWithDeafServer();
    agent.closeInput();
    expect(await agent.exited()).toBe(0);
    await goneWithin(pids);
  });

  test.each(["SIGTERM", "SIGKILL"] as const)("when the agent gets %s", async (signal) => {
    const { agent, pids } = await startWithDeafServer();
    agent.kill(signal);
    await agent.exited();
    await goneWithin(pids);
  });

  test("and its own death is a result for the model, not the end", async () => {
    const { agent, backend } = await start();
    allowAll(agent);
    const server = { name: "frail", command: process.execPath, args: [BAD_SERVER], env: [] };
    const sessionId = await newSession(agent, [server]);
    backend.answer = scriptedTurns([{ calls: [{ name: "frail__die", arguments: {} }] }, { text: "It died." }]);
    const { result } = await agent.ask("session/prompt", { sessionId, prompt: [{ type: "text", text: "Call it." }] });
    expect(result).toMatchObject({ stopReason: "end_turn" });
    const calls = agent.updates(sessionId).filter(({ sessionUpdate }) => sessionUpdate === "tool_call_update");
    expect(calls.at(-1)).toMatchObject({ status: "failed" });
  });
});
