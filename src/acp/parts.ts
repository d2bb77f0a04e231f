// What the agent's side of ACP is made of, and what puts it together may ask of it (agent-mode/run.ts).

import type { ModelAccess, Permission } from "../agent/agent.ts";
import type { ToolKind } from "../agent/updates.ts";
import type { Effort } from "../generation/request.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../logging/logger.ts";
import type { McpServerSpec } from "../mcp/servers.ts";

/** The section acp, read at each use, so that a change counts from the next use on. */
export interface AcpOptions {
  maxConcurrent: number;
  idleTimeoutMs: number;
  /** Absolute path of the folder with one file per session; undefined: sessions live in memory only. */
  storagePath: string | undefined;
  maxTurns: number;
  permission(kind: ToolKind): Permission;
  mcp: {
    maxConnections: number;
    /** Servers that mcp/connect may name; empty: all. */
    allowedServers: readonly string[];
    spawnTimeoutMs: number;
    /** Keys are ids. mcp/connect may use these servers, and every session opens them. */
    servers: Readonly<Record<string, Extract<McpServerSpec, { type: "stdio" }>>>;
  };
}

export interface OfferedModel {
  id: string;
  name: string;
  description?: string;
  /** Reasoning efforts that it takes; empty: it has none to choose. */
  efforts: readonly Effort[];
  images: boolean;
  audio: boolean;
}

export interface AcpModels extends ModelAccess {
  /**
   * Chat models of healthy backends, the default first. Waits for the first health checks only when none has answered yet.
   * Empty: none is there now.
   */
  offered(signal: AbortSignal): Promise<readonly OfferedModel[]>;
}

/** The row of a session in GET /admin/acp/sessions. It holds no text of the conversation. */
export interface SessionRecord {
  sessionId: string;
  /** ISO 8601. */
  createdAt: string;
  updatedAt: string;
  mode: string;
  model: string;
  historyLength: number;
  isBusy: boolean;
}

export interface AcpParts {
  options(): AcpOptions;
  models: AcpModels;
  clock: Clock;
  log: Logger;
  /** Where processes of MCP servers and relative paths begin when the client names no folder. Absolute. */
  cwd: string;
  /** One whole line with its LF. A promise: wait before writing more. Nothing else writes to standard output. */
  write(line: Uint8Array): void | Promise<void>;
  /** The sessions of this process have changed; called at most a few times a second. */
  sessionsChanged(sessions: readonly SessionRecord[]): void;
}

export interface AcpServer {
  /** Bytes as they come. Never waits for a prompt; a promise: the reader should pause until it resolves. */
  receive(bytes: Uint8Array): void | Promise<void>;
  /**
   * The client is gone, or a signal came: turns are cancelled, what is to be kept is written, every child process is gone
   * when it resolves. Idempotent.
   */
  stop(): Promise<void>;
}

/** acp/server.ts */
export type CreateAcpServer = (parts: AcpParts) => AcpServer;
