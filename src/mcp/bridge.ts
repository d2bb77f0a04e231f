// The bridge: mcp/connect, mcp/message and mcp/disconnect. Who may connect to what, and how often;
// the client brings its own initialize, and none is invented here.

import { resolve } from "node:path";
import { inTime } from "../lib/abortable-delay.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import { type BridgeConnection, createBridgeConnection } from "./bridge-connection.ts";
import type { ProcessSpec } from "./child-process.ts";
import { BridgeError, type McpBridge, type McpBridgeParts } from "./servers.ts";

const INVALID_PARAMS = -32602;
const REFUSED = -32001;
const MAX_ID_LENGTH = 128;
const SERVER_ID = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/;
const WATCHED_MS = 200;
/** For what is left of one that has ended, and for what it said, which the client may not read. */
const ENDING_MS = 2_000;
/** How connections ended, for those who ask for one later. */
const MAX_REMEMBERED = 64;

export function createMcpBridge(parts: McpBridgeParts): McpBridge {
  const connections = new Map<string, BridgeConnection>();
  const endings = new Map<string, string>();
  /** Everything with a process that may still live; a connection counts until it is gone. */
  const living = new Set<Promise<void>>();
  let isClosed = false;

  function connection(connectionId: string): BridgeConnection {
    const found = connections.get(connectionId);
    if (found !== undefined) return found;
    const ending = endings.get(connectionId);
    throw new BridgeError(
      REFUSED,
      ending === undefined ? "there is no such connection" : `the connection is over: ${ending}`,
    );
  }

  function forget(connectionId: string, ending: string): void {
    if (!connections.delete(connectionId)) return;
    endings.set(connectionId, ending);
    const [oldest] = endings.keys();
    if (endings.size > MAX_REMEMBERED && oldest !== undefined) endings.delete(oldest);
  }

  function start(spec: ProcessSpec, spawnTimeoutMs: number, connectionId: string): BridgeConnection {
    try {
      return createBridgeConnection(spec, {
        buffer: parts.buffer,
        spawnTimeoutMs,
        log: parts.log,
        fromServer: (message) => parts.fromServer(connectionId, message),
      });
    } catch (error) {
      throw new BridgeError(REFUSED, error instanceof Error ? error.message : `MCP server ${spec.name} cannot start`);
    }
  }

  return {
    async connect(serverId, cwd = ".") {
      checkId(serverId);
      const { servers, allowed, maxConnections, spawnTimeoutMs } = parts.options();
      if (allowed.length > 0 && !allowed.includes(serverId))
        throw new BridgeError(REFUSED, `MCP server ${serverId} is not in acp.mcp.allowed_servers`);
      const server = Object.hasOwn(servers, serverId) ? servers[serverId] : undefined;
      if (server === undefined)
        throw new BridgeError(REFUSED, `MCP server ${serverId} is not configured in acp.mcp.servers`);
      if (isClosed) throw new BridgeError(REFUSED, "the agent is about to end");
      if (living.size >= maxConnections)
        throw new BridgeError(
          REFUSED,
          `there are already ${maxConnections} connections to MCP servers (acp.mcp.max_connections)`,
        );

      const connectionId = crypto.randomUUID();
      const spec = { ...server, name: serverId, cwd: resolve(server.cwd ?? cwd) };
      const made = start(spec, spawnTimeoutMs, connectionId);
      connections.set(connectionId, made);
      const life = made.ended.then((how) => {
        const words = made.lastWords();
        if (connections.has(connectionId)) parts.log("warn", `MCP server ${serverId} ${how}`);
        forget(connectionId, `MCP server ${serverId} ${how}${words === "" ? "" : `: ${words}`}`);
        living.delete(life);
      });
      living.add(life);
      const watching = Bun.sleep(Math.min(parts.watchedMs ?? WATCHED_MS, spawnTimeoutMs));
      if (await Promise.race([made.exited.then(() => true), watching])) await inTime(life, ENDING_MS);
      connection(connectionId);
      return { connectionId };
    },

    async message(connectionId, message, signal) {
      return connection(connectionId).message(readMessage(message), signal);
    },

    async disconnect(connectionId) {
      const found = connection(connectionId);
      forget(connectionId, "it was closed");
      await found.close();
    },

    async close() {
      isClosed = true;
      const closing = [...connections.values()].map((each) => each.close());
      for (const connectionId of [...connections.keys()]) forget(connectionId, "it was closed");
      await Promise.all([...closing, ...living]);
    },
  };
}

function checkId(id: unknown): void {
  if (typeof id === "string" && id.length <= MAX_ID_LENGTH && SERVER_ID.test(id) && !id.includes("__")) return;
  throw new BridgeError(
    INVALID_PARAMS,
    `id: at most ${MAX_ID_LENGTH} letters, digits, "-", "_" and ".", no "__", a letter or digit at both ends`,
  );
}

function readMessage(message: unknown): JsonObject {
  if (!isObject(message)) throw new BridgeError(INVALID_PARAMS, "message: a JSON-RPC message, an object");
  const isCall = typeof message.method === "string";
  const isAnswer =
    message.method === undefined && message.id !== undefined && ("result" in message || "error" in message);
  if (!isCall && !isAnswer)
    throw new BridgeError(INVALID_PARAMS, "message: a JSON-RPC request, notification or response");
  return message;
}
