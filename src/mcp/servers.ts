// The MCP servers of a session, as tools. (Contract; what opens them stands beside.)

import type { AgentTool } from "../agent/tool.ts";

/** From session/new, or from the configuration. */
export type McpServerSpec =
  | {
      type: "stdio";
      name: string;
      command: string;
      args: string[];
      /** All that it gets beside PATH, HOME and LANG. */
      env: Record<string, string>;
      /** Absolute. */
      cwd?: string;
    }
  | { type: "http" | "sse"; name: string; url: string; headers: Record<string, string> };

export interface McpServers {
  /** Of those that are open at this moment; follows list_changed. Names fit every backend and are unique. */
  tools(): readonly AgentTool[];
  /**
   * Resolves when every server is open or has failed; a failed one is reported through `trouble` and has no tools. One that
   * ends later is started again by the next call of its tools, at most three times in a row without an answer.
   */
  readonly opened: Promise<void>;
  /** Every process is gone when it resolves; at most about 6 s. Never throws. */
  close(): Promise<void>;
}

export type OpenMcpServers = (
  specs: readonly McpServerSpec[],
  parts: {
    cwd: string;
    /** Further roots. */
    directories?: readonly string[];
    spawnTimeoutMs: number;
    /** One line for people and the log: which server, and what is wrong. */
    trouble(server: string, message: string): void;
    /** Takes lines that servers print to their standard error, and notes on what is odd in their messages. */
    log(level: "info" | "warn", message: string): void;
  },
) => McpServers;

/** mcp/connect, mcp/message, mcp/disconnect: an ACP client speaks with a configured server itself. */
export interface McpBridge {
  /**
   * Throws BridgeError: a bad id, not allowed, not configured, too many, did not start.
   *
   * @param cwd - where a server begins of which the configuration names no folder; left out: where this process has
   */
  connect(serverId: string, cwd?: string): Promise<{ connectionId: string }>;
  /**
   * Passes a JSON-RPC message on. A request is answered with the server's whole response, which comes behind what the
   * server has said before it; notifications and responses with undefined. Throws BridgeError for an unknown connection, for
   * one whose server ends before it has answered, and for what is no message; and the signal's reason.
   */
  message(connectionId: string, message: object, signal: AbortSignal): Promise<object | undefined>;
  /** SIGTERM, 5 s, SIGKILL; resolves when the process is gone. */
  disconnect(connectionId: string): Promise<void>;
  /** Disconnects every connection. Never throws. */
  close(): Promise<void>;
}

export class BridgeError extends Error {
  override readonly name = "BridgeError";
  /** -32602 or -32001. */
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** Settings of the bridge. */
export interface BridgeOptions {
  /** From acp.mcp.servers. */
  servers: Readonly<Record<string, { command: string; args: string[]; env: Record<string, string>; cwd?: string }>>;
  /** Ids of servers; empty: all. */
  allowed: readonly string[];
  maxConnections: number;
  spawnTimeoutMs: number;
}

export interface McpBridgeParts {
  /** Read for each connection. */
  options(): BridgeOptions;
  /** Messages that wait for the client before the server has to wait. */
  buffer: number;
  /** How long a server is watched before it counts as connected: one that cannot run ends at once. */
  watchedMs?: number;
  /** Takes the server's own messages: notifications, and requests to the client. Resolves when the message is written. */
  fromServer(connectionId: string, message: object): Promise<void>;
  log(level: "info" | "warn", message: string): void;
}
