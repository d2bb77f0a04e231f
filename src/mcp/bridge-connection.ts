// One connection of the bridge: a server's process on one side, a client of ACP on the other. Messages pass in order, ids
// are the connection's own towards the server, and what the client has no room for waits in the server's pipe.

import { isObject, type JsonObject } from "../lib/json.ts";
import { type ProcessSpec, ServerEnded, type ServerProcess, startServerProcess } from "./child-process.ts";
import { maskingOf, secretsOf } from "./masked.ts";
import { BridgeError, type McpBridgeParts } from "./servers.ts";

export interface BridgeConnection extends Pick<ServerProcess, "exited"> {
  /** How the server ended; it has not before. All that it said has been passed on by then. */
  readonly ended: Promise<string>;
  message(message: JsonObject, signal: AbortSignal): Promise<object | undefined>;
  /** The last line that the server has printed to its standard error, masked. */
  lastWords(): string;
  close(): Promise<void>;
}

interface BridgeConnectionParts extends Pick<McpBridgeParts, "buffer" | "log"> {
  spawnTimeoutMs: number;
  fromServer(message: JsonObject): Promise<void>;
}

/** Most unanswered requests of one connection. */
const MAX_OPEN_REQUESTS = 1_024;

interface OpenRequest {
  clientId: unknown;
  answered(response: JsonObject): void;
  failed(error: unknown): void;
}

/** Throws an Error that says why the server cannot be started. */
export function createBridgeConnection(spec: ProcessSpec, parts: BridgeConnectionParts): BridgeConnection {
  const { name } = spec;
  const requests = new Map<number, OpenRequest>();
  const queue = createQueue(parts.buffer, deliver);
  let lastId = 0;
  let lastWords = "";
  /** Says how the process ended, once it has. */
  let over: string | undefined;

  const server: ServerProcess = startServerProcess(spec, {
    receive: (message) => queue.push(message),
    mask: maskingOf(secretsOf(spec)),
    log(level, message) {
      lastWords = message.replace(`MCP server ${name}: `, "");
      parts.log(level, message);
    },
  });
  const ended = server.ended.then(async (how) => {
    // After a close there is no receiver.
    await queue.drained();
    over = `MCP server ${name} ${how}`;
    failAll(over);
    return how;
  });

  /** Called in the order of the server's messages. */
  async function deliver(message: JsonObject): Promise<void> {
    if (message.method !== undefined) {
      await parts.fromServer(message);
      return;
    }
    // A response to no open request comes too late, and is dropped.
    const request = requests.get(message.id as number);
    if (request !== undefined) request.answered({ ...message, id: request.clientId });
  }

  function failAll(reason: string): void {
    for (const { failed } of [...requests.values()]) failed(new BridgeError(-32001, reason));
  }

  async function send(message: JsonObject): Promise<void> {
    try {
      await server.send({ ...message, jsonrpc: "2.0" });
    } catch (error) {
      // Open requests fail with the reason once the end of the process is known.
      if (error instanceof ServerEnded) return;
      throw new BridgeError(
        -32001,
        `MCP server ${name}: ${error instanceof Error ? error.message : "it cannot be written to"}`,
      );
    }
  }

  function request(message: JsonObject, signal: AbortSignal): Promise<object> {
    if (over !== undefined) throw new BridgeError(-32001, over);
    if (requests.size >= MAX_OPEN_REQUESTS)
      throw new BridgeError(-32001, `MCP server ${name} has ${MAX_OPEN_REQUESTS} unanswered requests`);
    const id = ++lastId;
    const { promise, resolve, reject } = Promise.withResolvers<object>();
    const open: OpenRequest = { clientId: message.id, answered: resolve, failed: reject };
    requests.set(id, open);
    const onAbort = () => {
      reject(signal.reason);
      send({ method: "notifications/cancelled", params: { requestId: id } }).catch(() => undefined);
    };
    signal.addEventListener("abort", onAbort);
    // A server is not there before it has answered this.
    const timer =
      message.method === "initialize"
        ? setTimeout(() => {
            reject(new BridgeError(-32001, `MCP server ${name} was not ready within ${parts.spawnTimeoutMs} ms`));
          }, parts.spawnTimeoutMs)
        : undefined;
    send({ ...message, id }).catch(reject);
    return promise.finally(() => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      requests.delete(id);
    });
  }

  /** Undefined: the request that is to be cancelled has been answered. */
  function ownCancellation(message: JsonObject): JsonObject | undefined {
    const params = isObject(message.params) ? message.params : {};
    for (const [id, { clientId }] of requests)
      if (clientId === params.requestId) return { ...message, params: { ...params, requestId: id } };
    return undefined;
  }

  return {
    exited: server.exited,
    ended,
    lastWords: () => lastWords,
    async message(message, signal) {
      signal.throwIfAborted();
      if (message.method !== undefined && message.id !== undefined) return request(message, signal);
      const own = message.method === "notifications/cancelled" ? ownCancellation(message) : message;
      if (own !== undefined) await send(own);
      return undefined;
    },
    async close() {
      queue.stop();
      failAll(`the connection to MCP server ${name} was closed`);
      await server.close();
    },
  };
}

/** Hands messages on one after the other. At most so many wait; then the sender has to wait as well. */
function createQueue(limit: number, deliver: (message: JsonObject) => Promise<void>) {
  const waiting: JsonObject[] = [];
  let isStopped = false;
  let running: Promise<void> | undefined;
  let room: PromiseWithResolvers<void> | undefined;

  async function run(): Promise<void> {
    for (let message = waiting.shift(); message !== undefined; message = waiting.shift()) {
      room?.resolve();
      room = undefined;
      // A client that cannot be written to has gone, which its own side finds out.
      await deliver(message).catch(() => undefined);
    }
    running = undefined;
  }

  return {
    push(message: JsonObject): Promise<void> | undefined {
      if (isStopped) return undefined;
      waiting.push(message);
      running ??= run();
      if (waiting.length < limit) return undefined;
      room ??= Promise.withResolvers();
      return room.promise;
    },
    async drained(): Promise<void> {
      if (!isStopped) await running;
    },
    stop(): void {
      isStopped = true;
      waiting.length = 0;
      room?.resolve();
    },
  };
}
