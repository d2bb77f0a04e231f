// The reference server of MCP behind our tools, over stdio, streamable HTTP and SSE.

import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { Client, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/client";
import { INSTALL_TIMEOUT_MS } from "../../scripts/npm-programs.ts";
import { createMcpBridge } from "../../src/mcp/bridge.ts";
import type { McpServerSpec } from "../../src/mcp/servers.ts";
import { everythingCommand, startEverything } from "../support/mcp/everything.ts";
import { openServers } from "../support/mcp/open.ts";
import { within } from "../support/wait-for.ts";

const programs: { stop(): Promise<void> }[] = [];
const opened: ReturnType<typeof openServers>[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map(({ close }) => close()));
});
afterAll(async () => {
  await Promise.all(programs.map(({ stop }) => stop()));
});

async function stdio(): Promise<McpServerSpec> {
  return { type: "stdio", name: "everything", env: {}, ...(await everythingCommand()) };
}

async function over(transport: "streamableHttp" | "sse"): Promise<McpServerSpec> {
  const program = await startEverything(transport);
  programs.push(program);
  return { type: transport === "sse" ? "sse" : "http", name: "everything", url: program.url, headers: {} };
}

async function open(specs: McpServerSpec[]) {
  const servers = openServers(specs);
  opened.push(servers);
  await servers.opened;
  expect(servers.troubles).toEqual([]);
  return servers;
}

describe.each([
  ["stdio", stdio],
  ["streamable HTTP", () => over("streamableHttp")],
  ["SSE", () => over("sse")],
])("over %s", (_title, spec) => {
  test(
    "every sort of result",
    async () => {
      const { names, say, call, tools } = await open([await spec()]);
      expect(names()).toEqual(expect.arrayContaining(["everything__echo", "everything__get-sum"]));
      for (const { name, kind, parameters } of tools()) {
        expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
        expect(kind).toBe("other");
        expect(parameters).toMatchObject({ type: "object", properties: expect.anything() });
        expect(parameters).not.toHaveProperty("$schema");
      }
      expect(await say("everything__echo", { message: "grüße 🙂" })).toBe("Echo: grüße 🙂");
      expect(await say("everything__get-sum", { a: 2, b: 40 })).toContain("42");
      expect(await say("everything__get-tiny-image")).toContain("<image>");
      expect(await say("everything__get-resource-links", { count: 2 })).toContain("[link to the resource demo://");
      expect(await say("everything__get-resource-reference", { resourceType: "Text", resourceId: 1 })).toContain(
        "[resource demo://",
      );
      expect(await call("everything__get-structured-content", { location: "New York" })).toMatchObject({
        rawOutput: { temperature: expect.any(Number) },
      });
      expect(await say("everything__get-sum", { a: "two" })).toStartWith("error: ");
      expect(await say("everything__trigger-long-running-operation", { duration: 0.2, steps: 2 })).toContain(
        "completed",
      );
    },
    INSTALL_TIMEOUT_MS,
  );
});

test(
  "the environment that it says it has",
  async () => {
    process.env.GATEWAY_KEY = "sekret-of-the-gateway";
    const whole = await stdio();
    const { say } = await open([{ ...whole, env: { NAMED: "sekret-named" } } as McpServerSpec]);
    const environment = JSON.parse(await say("everything__get-env")) as Record<string, string>;
    delete process.env.GATEWAY_KEY;
    expect(Object.keys(environment).sort()).toEqual(
      [...["HOME", "LANG", "PATH"].filter((name) => process.env[name] !== undefined), "NAMED"].sort(),
    );
  },
  INSTALL_TIMEOUT_MS,
);

test(
  "a call is cancelled at once, and the next one works",
  async () => {
    const { say } = await open([await stdio()]);
    const abort = new AbortController();
    const call = say("everything__trigger-long-running-operation", { duration: 60, steps: 60 }, abort.signal);
    setTimeout(() => abort.abort(new Error("no longer")), 100);
    const startedMs = performance.now();
    await expect(call).rejects.toThrow("no longer");
    expect(performance.now() - startedMs).toBeLessThan(30_000);
    expect(await say("everything__echo", { message: "still" })).toBe("Echo: still");
  },
  INSTALL_TIMEOUT_MS,
);

test.each(["streamableHttp", "sse"] as const)(
  "a server over %s that was started anew gets a new session",
  async (transport) => {
    const first = await startEverything(transport);
    const type = transport === "sse" ? "sse" : "http";
    const { say } = await open([{ type, name: "everything", url: first.url, headers: {} }]);
    expect(await say("everything__echo", { message: "1" })).toBe("Echo: 1");
    await first.stop();
    const outcome = await within("an outcome", say("everything__echo", { message: "2" }));
    expect(outcome).toStartWith("error: MCP server everything");
    const second = await startEverything(transport, first.port);
    programs.push(second);
    expect(await say("everything__echo", { message: "3" })).toBe("Echo: 3");
  },
  INSTALL_TIMEOUT_MS,
);

test(
  "the official client speaks with it through the bridge",
  async () => {
    const told: string[] = [];
    const everything = { env: {}, ...(await everythingCommand()) };
    const transport: Transport = {
      async start() {},
      async send(message) {
        const answer = await bridge.message(connectionId, message, new AbortController().signal);
        if (answer !== undefined) transport.onmessage?.(answer as JSONRPCMessage);
      },
      async close() {
        await bridge.disconnect(connectionId);
        transport.onclose?.();
      },
    };
    const bridge = createMcpBridge({
      options: () => ({ servers: { everything }, allowed: [], maxConnections: 1, spawnTimeoutMs: 20_000 }),
      buffer: 64,
      async fromServer(id, message) {
        expect(id).toBe(connectionId);
        told.push((message as { method: string }).method);
        transport.onmessage?.(message as JSONRPCMessage);
      },
      log: () => undefined,
    });
    const { connectionId } = await bridge.connect("everything");
    const client = new Client({ name: "editor", version: "1" }, { capabilities: { roots: {} } });
    client.setRequestHandler("roots/list", () => ({ roots: [{ uri: "file:///project" }] }));
    await client.connect(transport);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain("echo");
    expect(await client.callTool({ name: "echo", arguments: { message: "hi" } })).toMatchObject({
      content: [{ text: "Echo: hi" }],
    });
    const steps: number[] = [];
    const args = { name: "trigger-long-running-operation", arguments: { duration: 0.4, steps: 4 } };
    await client.callTool(args, { onprogress: ({ progress }) => steps.push(progress) });
    expect(steps).toEqual([1, 2, 3, 4]);
    expect(JSON.stringify(await client.callTool({ name: "get-roots-list", arguments: {} }))).toContain(
      "file:///project",
    );
    expect(told).toContain("roots/list");
    await client.close();
    await expect(bridge.connect("everything")).resolves.toBeDefined();
    await bridge.close();
  },
  INSTALL_TIMEOUT_MS,
);
