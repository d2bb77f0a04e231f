// The methods of the bridge: mcp/connect, mcp/message, mcp/disconnect. A client speaks with a configured server itself.

import { isObject, isPresent, type JsonObject } from "../lib/json.ts";
import { BridgeError, type McpBridge } from "../mcp/servers.ts";
import type { RpcCall, RpcConnection } from "./connection.ts";
import type { RpcMethod } from "./methods.ts";
import { firstGiven, optionalText, requiredText } from "./params.ts";
import type { AcpParts } from "./parts.ts";
import { invalidParams, RpcError } from "./rpc-error.ts";
import type { Sessions } from "./sessions.ts";
import { type AcpWorkings, bridgeMaker } from "./workings.ts";

/** Messages of a server that wait for the client. */
const BUFFERED_MESSAGES = 64;

interface BridgeMethods {
  methods: Record<string, RpcMethod>;
  /** Every process is gone when it resolves. */
  close(): Promise<void>;
}

interface BridgeMethodsParts {
  parts: AcpParts;
  workings: AcpWorkings;
  connection: RpcConnection;
  sessions: Sessions;
}

export function mcpMethods({ parts, workings, connection, sessions }: BridgeMethodsParts): BridgeMethods {
  /** Made at its first use. */
  let bridge: Promise<McpBridge> | undefined;

  async function fromServer(connectionId: string, message: object): Promise<void> {
    connection.notify("mcp/message", { connectionId, message });
    await connection.outbox.room();
  }

  async function make(): Promise<McpBridge> {
    const create = await bridgeMaker(workings);
    return create({
      options() {
        const { allowedServers: allowed, ...options } = parts.options().mcp;
        return { ...options, allowed };
      },
      buffer: BUFFERED_MESSAGES,
      fromServer,
      log: (level, message) => parts.log[level]({ part: "mcp" }, message),
    });
  }

  function opened(): Promise<McpBridge> {
    bridge ??= make();
    return bridge;
  }

  async function connect(params: JsonObject, { signal }: RpcCall): Promise<JsonObject> {
    const name = firstGiven(params, ["id", "acpId", "serverId"]) ?? "id";
    const id = requiredText(params, name);
    const sessionId = optionalText(params, "sessionId");
    const cwd = sessionId === undefined ? parts.cwd : (await sessions.find(sessionId)).cwd;
    const open = await opened();
    const { connectionId } = await refusing(open.connect(id, cwd));
    if (signal.aborted) {
      await open.disconnect(connectionId); // the client does not learn its id
      throw signal.reason;
    }
    return { connectionId };
  }

  async function message(params: JsonObject, { signal, isRequest }: RpcCall): Promise<JsonObject> {
    const connectionId = requiredText(params, "connectionId");
    const inner = innerMessage(params, isRequest);
    const answer = await refusing((await opened()).message(connectionId, inner, signal));
    if (answer === undefined) return {};
    // A request that came in a notification is answered in one.
    if (!isRequest) await fromServer(connectionId, answer);
    const { result, error } = answer as JsonObject;
    return { message: answer, ...(result !== undefined && { result }), ...(error !== undefined && { error }) };
  }

  async function disconnect(params: JsonObject): Promise<JsonObject> {
    const connectionId = requiredText(params, "connectionId");
    await refusing((await opened()).disconnect(connectionId));
    return {};
  }

  return {
    methods: { "mcp/connect": connect, "mcp/message": message, "mcp/disconnect": disconnect },
    async close() {
      await (await bridge)?.close();
    },
  };
}

/** The whole message, or one whose members stand beside the connection's id. */
function innerMessage(params: JsonObject, isRequest: boolean): JsonObject {
  if (isPresent(params.message)) {
    if (!isObject(params.message)) throw invalidParams("message must be an object: a JSON-RPC message.");
    return { jsonrpc: "2.0", ...params.message };
  }
  const method = optionalText(params, "method");
  if (method === undefined)
    throw invalidParams("message is missing: give a JSON-RPC message, or its method and params.");
  const given = isPresent(params.params) ? { params: params.params } : {};
  const id = params.id ?? (isRequest ? crypto.randomUUID() : undefined);
  return { jsonrpc: "2.0", ...(id !== undefined && { id }), method, ...given };
}

async function refusing<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof BridgeError)) throw error;
    throw new RpcError(error.code, error.message, { reason: "mcp_refused" }, error);
  }
}
