// The bridge: its rules, what passes and in which order, and servers that behave badly.

import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { groupMembers } from "../../test/support/process-groups.ts";
import { waitFor, within } from "../../test/support/wait-for.ts";
import type { JsonObject } from "../lib/json.ts";
import { createMcpBridge } from "./bridge.ts";
import type { BridgeError, BridgeOptions, McpBridge, McpBridgeParts } from "./servers.ts";

const SERVER = join(import.meta.dir, "../../test/support/mcp/bad-server.ts");
const opened: { bridge: McpBridge; log: string[] }[] = [];
const NEVER = new AbortController().signal;

afterEach(async () => {
  const all = opened.splice(0);
  await Promise.all(all.map(({ bridge }) => bridge.close()));
  for (const { log } of all)
    for (const line of log) {
      const pid = /pids (\d+)/.exec(line)?.[1];
      if (pid !== undefined) expect(groupMembers(Number(pid))).toEqual([]);
    }
});

const bad = (...traits: string[]) => ({ command: process.execPath, args: [SERVER, "tell-pids", ...traits], env: {} });

type TestOptions = Partial<BridgeOptions & Pick<McpBridgeParts, "fromServer" | "watchedMs">>;

function createBridge({ fromServer, watchedMs = 200, ...overrides }: TestOptions = {}) {
  const told: [string, JsonObject][] = [];
  const log: string[] = [];
  const bridge = createMcpBridge({
    options: () => ({ servers: { bad: bad() }, allowed: [], maxConnections: 5, spawnTimeoutMs: 10_000, ...overrides }),
    buffer: 64,
    watchedMs,
    fromServer: fromServer ?? (async (connectionId, message) => void told.push([connectionId, message as JsonObject])),
    log: (level, message) => log.push(`${level} ${message}`),
  });
  opened.push({ bridge, log });
  const request = (connectionId: string, id: unknown, method: string, params: object = {}, signal = NEVER) =>
    bridge.message(connectionId, { jsonrpc: "2.0", id, method, params }, signal) as Promise<JsonObject>;
  const call = (connectionId: string, id: unknown, name: string, args: object = {}, signal = NEVER) =>
    request(connectionId, id, "tools/call", { name, arguments: args }, signal);
  return { bridge, told, log, request, call };
}

async function codeOf(work: Promise<unknown>): Promise<[number, string]> {
  try {
    await work;
  } catch (error) {
    return [(error as BridgeError).code, (error as BridgeError).message];
  }
  throw new Error("it was not refused");
}

describe("ids", () => {
  test.each(["", "-a", "a-", ".", "a__b", "a b", "ä", "a/b", "a\n", "x".repeat(129), 7, null, undefined, {}])(
    "%p is refused",
    async (id) => {
      expect((await codeOf(createBridge().bridge.connect(id as string)))[0]).toBe(-32602);
    },
  );

  test.each(["a", "7", "a-b_c.d", "x".repeat(128)])("%p is good, and not configured", async (id) => {
    expect(await codeOf(createBridge().bridge.connect(id))).toEqual([
      -32001,
      `MCP server ${id} is not configured in acp.mcp.servers`,
    ]);
  });

  test("of what objects have by themselves is not configured", async () => {
    expect((await codeOf(createBridge().bridge.connect("constructor")))[0]).toBe(-32001);
  });

  test("that are not allowed", async () => {
    const { bridge } = createBridge({ servers: { bad: bad(), other: bad() }, allowed: ["other"] });
    expect(await codeOf(bridge.connect("bad"))).toEqual([-32001, "MCP server bad is not in acp.mcp.allowed_servers"]);
    await bridge.connect("other");
  });
});

describe("connections", () => {
  test("two to one server are two processes; the sixth is refused until one is gone", async () => {
    const { bridge, call } = createBridge();
    const ids = await Promise.all(Array.from({ length: 5 }, async () => (await bridge.connect("bad")).connectionId));
    expect(new Set(ids).size).toBe(5);
    expect((await codeOf(bridge.connect("bad")))[0]).toBe(-32001);
    const [first = "", second = ""] = ids;
    await bridge.disconnect(first);
    expect(await codeOf(call(first, 1, "echo"))).toEqual([-32001, "the connection is over: it was closed"]);
    expect((await codeOf(bridge.disconnect(first)))[0]).toBe(-32001);
    const { connectionId } = await bridge.connect("bad");
    expect(await call(connectionId, 1, "echo", { text: "new" })).toMatchObject({
      result: { content: [{ text: "new" }] },
    });
    expect(await call(second, 1, "echo", { text: "old" })).toMatchObject({ result: { content: [{ text: "old" }] } });
  });

  test("that cannot be made say why, and take no place", async () => {
    const { bridge } = createBridge({
      servers: {
        missing: { command: "no-such-command", args: [], env: {} },
        failing: { ...bad("fail-at-once"), command: "sh", args: ["-c", "echo no licence >&2; exit 3"] },
      },
      maxConnections: 1,
      watchedMs: 10_000,
    });
    for (let round = 0; round < 3; round++) {
      expect(await codeOf(bridge.connect("missing"))).toEqual([
        -32001,
        "MCP server missing cannot start: the command no-such-command was not found in PATH, or may not be run",
      ]);
      expect(await codeOf(bridge.connect("failing"))).toEqual([
        -32001,
        "the connection is over: MCP server failing exited with code 3: no licence",
      ]);
    }
  });

  test("begin in the folder of the configuration, else in the one that is named", async () => {
    const folder = mkdtempSync(join(tmpdir(), "mcp-bridge-"));
    const where = { command: "sh", args: ["-c", "pwd >&2; exec sleep 1000"], env: {} };
    const { bridge, log } = createBridge({ servers: { here: where, there: { ...where, cwd: folder } } });
    for (const [id, cwd, expected] of [
      ["here", "/usr", "/usr"],
      ["here", undefined, process.cwd()],
      ["there", "/usr", folder],
    ] as const) {
      await bridge.connect(id, cwd);
      await waitFor("it says where", () => log.includes(`warn MCP server ${id}: ${expected}`));
    }
  });

  test("that nobody knows", async () => {
    const { bridge, call } = createBridge();
    expect(await codeOf(call("x", 1, "echo"))).toEqual([-32001, "there is no such connection"]);
    expect(await codeOf(bridge.disconnect("x"))).toEqual([-32001, "there is no such connection"]);
  });

  test("are refused when the agent ends", async () => {
    const { bridge } = createBridge();
    await bridge.connect("bad");
    await bridge.close();
    expect((await codeOf(bridge.connect("bad")))[0]).toBe(-32001);
  });
});

describe("messages", () => {
  test("the client's own initialize passes, and none is invented", async () => {
    const { bridge, request } = createBridge({ servers: { bad: bad("tell-client") } });
    const { connectionId } = await bridge.connect("bad");
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "mine", version: "7" } };
    expect(await request(connectionId, 0, "initialize", params)).toEqual({
      jsonrpc: "2.0",
      id: 0,
      result: {
        protocolVersion: "2025-06-18",
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: "bad-server", version: "1.0.0", client: params.clientInfo },
      },
    });
    expect(
      await bridge.message(connectionId, { jsonrpc: "2.0", method: "notifications/initialized" }, NEVER),
    ).toBeUndefined();
  });

  test("ids come back as they were, also when two are the same", async () => {
    const { bridge, call, request } = createBridge();
    const { connectionId } = await bridge.connect("bad");
    const ids = [1, 1, "1", 0, null, "", -7, 1.5, "x".repeat(1_000)];
    const answers = await Promise.all(ids.map((id, index) => call(connectionId, id, "echo", { text: `${index}` })));
    expect(answers).toEqual(
      ids.map((id, index) => ({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text: `${index}` }] } })),
    );
    expect(await request(connectionId, "e", "no/such")).toEqual({
      jsonrpc: "2.0",
      id: "e",
      error: { code: -32601, message: "no no/such" },
    });
  });

  test.each([[[]], ["x"], [{}], [{ jsonrpc: "2.0", id: 1 }], [{ method: 7 }]])("%p is no message", async (message) => {
    const { bridge } = createBridge();
    const { connectionId } = await bridge.connect("bad");
    expect((await codeOf(bridge.message(connectionId, message as object, NEVER)))[0]).toBe(-32602);
  });

  test("a server's own requests reach the client, and their answers the server", async () => {
    const { bridge, call, told } = createBridge();
    const { connectionId } = await bridge.connect("bad");
    const answer = call(connectionId, 1, "ask");
    for (const [index, method] of ["roots/list", "sampling/createMessage", "elicitation/create"].entries()) {
      const [, asked] = await waitFor(method, () => told[index]);
      expect(asked.method).toBe(method);
      await bridge.message(connectionId, { jsonrpc: "2.0", id: asked.id, result: { nr: index } }, NEVER);
    }
    expect(await answer).toMatchObject({ result: { content: [{ text: '[{"nr":0},{"nr":1},{"nr":2}]' }] } });
    expect(told.every(([id]) => id === connectionId)).toBe(true);
  });

  test("cancelling: by the signal, and by the client's own notification with its own id", async () => {
    const { bridge, call } = createBridge();
    const { connectionId } = await bridge.connect("bad");
    const abort = new AbortController();
    const one = call(connectionId, "mine", "hang", {}, abort.signal);
    const two = call(connectionId, "yours", "hang");
    two.catch(() => undefined);
    const cancel = (requestId: unknown) =>
      bridge.message(
        connectionId,
        { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId, reason: "r" } },
        NEVER,
      );
    await cancel("yours");
    await cancel("nobody's");
    abort.abort(new Error("stop"));
    await expect(one).rejects.toThrow("stop");
    const seen = (await call(connectionId, 9, "cancelled")) as { result: { content: { text: string }[] } };
    expect(JSON.parse(seen.result.content[0]?.text ?? "")).toEqual([{ requestId: 2, reason: "r" }, { requestId: 1 }]);
    await expect(call(connectionId, 1, "echo", {}, AbortSignal.abort(new Error("late")))).rejects.toThrow("late");
  });

  test("what a server says comes in order, its answer behind what it said before", async () => {
    const order: unknown[] = [];
    const { bridge, call } = createBridge({
      async fromServer(_connectionId, message) {
        await Bun.sleep(0);
        order.push((message as { params: { data: unknown } }).params.data);
      },
    });
    const { connectionId } = await bridge.connect("bad");
    await call(connectionId, 1, "flood", { count: 500 });
    expect(order).toEqual(Array.from({ length: 500 }, (_, index) => index));
  });

  test("a client that does not read stops this server and no other, and nothing is lost", async () => {
    const room = Promise.withResolvers<void>();
    const told: JsonObject[] = [];
    let slow = "";
    const { bridge, call } = createBridge({
      servers: { bad: bad(), other: bad() },
      async fromServer(connectionId, message) {
        told.push(message as JsonObject);
        if (connectionId === slow) await room.promise;
      },
    });
    slow = (await bridge.connect("bad")).connectionId;
    const { connectionId } = await bridge.connect("other");
    const flood = call(slow, 1, "flood", { count: 20_000 });
    await waitFor("the first message", () => told.length > 0);
    const memory = process.memoryUsage.rss();
    for (let round = 0; round < 20; round++) await call(connectionId, round, "echo", { text: "quick" });
    await Bun.sleep(100);
    expect(told.length).toBe(1);
    expect(process.memoryUsage.rss() - memory).toBeLessThan(50_000_000);
    room.resolve();
    expect(await flood).toMatchObject({ result: { content: [{ text: "20000 sent" }] } });
    expect(told.map(({ params }) => (params as { data: number }).data)).toEqual(
      Array.from({ length: 20_000 }, (_, index) => index),
    );
  });

  test("a connection can be closed while its client does not read", async () => {
    const { bridge, call } = createBridge({ fromServer: () => new Promise(() => undefined) });
    const { connectionId } = await bridge.connect("bad");
    const flood = codeOf(call(connectionId, 1, "flood", { count: 20_000 }));
    await Bun.sleep(100);
    await within("it is closed", bridge.disconnect(connectionId));
    expect(await flood).toEqual([-32001, "the connection to MCP server bad was closed"]);
  });
});

describe("servers", () => {
  test("that die answer what is open, and are told by their end", async () => {
    const { bridge, call, log } = createBridge({ maxConnections: 1 });
    const { connectionId } = await bridge.connect("bad");
    const hanging = codeOf(call(connectionId, 1, "hang"));
    const dying = codeOf(call(connectionId, 2, "die"));
    expect(await hanging).toEqual([-32001, "MCP server bad exited with code 7"]);
    expect(await dying).toEqual([-32001, "MCP server bad exited with code 7"]);
    const [code, message] = await codeOf(call(connectionId, 3, "echo"));
    expect(code).toBe(-32001);
    expect(message).toStartWith("the connection is over: MCP server bad exited with code 7");
    expect(log).toContain("warn MCP server bad exited with code 7");
    await bridge.connect("bad");
  });

  test("that do not answer initialize in time", async () => {
    const { bridge, request } = createBridge({ servers: { silent: bad("silent") }, spawnTimeoutMs: 300 });
    const { connectionId } = await bridge.connect("silent");
    expect(await codeOf(request(connectionId, 1, "initialize", {}))).toEqual([
      -32001,
      "MCP server silent was not ready within 300 ms",
    ]);
  });

  test("that print much and no JSON", async () => {
    const { bridge, call, log } = createBridge({ servers: { garbage: bad("garbage") } });
    const { connectionId } = await bridge.connect("garbage");
    expect(await call(connectionId, 1, "echo", { text: "x" })).toMatchObject({ result: { content: [{ text: "x" }] } });
    expect(log).toContain(
      "warn MCP server garbage: a line that is no JSON-RPC message, skipped: Welcome to the server!",
    );
  });

  test("that answer with megabytes", async () => {
    const { bridge, request } = createBridge();
    const { connectionId } = await bridge.connect("bad");
    const { result } = (await request(connectionId, 1, "test/big", { length: 10_000_000 })) as {
      result: { text: string };
    };
    expect(result.text.length).toBe(10_000_000);
  });
});
