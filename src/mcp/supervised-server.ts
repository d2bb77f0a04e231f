// An MCP server for as long as a session lives: it may end and is started again when one of its tools is called, at most
// a few times in a row without an answer. Its trouble is an outcome for the model, never an exception.

import type { ToolOutcome } from "../agent/tool.ts";
import { orAborted } from "../lib/abortable-delay.ts";
import type { JsonObject } from "../lib/json.ts";
import { CALL_TIMEOUT_MS, createConnection, type McpConnection, troubleText } from "./connection.ts";
import { loadLibrary } from "./library.ts";
import type { ListedTool } from "./listed-tool.ts";
import { maskingOf, secretsOf } from "./masked.ts";
import type { McpServerSpec } from "./servers.ts";
import { readToolResult } from "./tool-result.ts";

interface SupervisorParts {
  /** The server's name in messages. */
  label: string;
  cwd: string;
  directories: readonly string[];
  spawnTimeoutMs: number;
  trouble(message: string): void;
  log(level: "info" | "warn", message: string): void;
  /** The list of tools has changed. */
  changed(): void;
}

interface SupervisedServer {
  /** Resolves when it is open or has failed. */
  open(): Promise<void>;
  tools(): readonly ListedTool[];
  /** Throws nothing but the signal's reason. */
  call(tool: string, args: JsonObject, signal: AbortSignal): Promise<ToolOutcome>;
  /** Resolves when no process of it is left. Never throws. */
  close(): Promise<void>;
}

/** Restarts in a row, without an answered call in between. */
const MAX_RESTARTS = 3;
/** Servers that change many tools tell so many times. */
const REFRESH_AFTER_MS = 100;

export function createSupervisedServer(spec: McpServerSpec, parts: SupervisorParts): SupervisedServer {
  const { label } = parts;
  const mask = maskingOf(secretsOf(spec));
  const end = new AbortController();
  /** Connections that are being closed. */
  const closings = new Set<Promise<void>>();
  let tools: readonly ListedTool[] = [];
  let current: McpConnection | undefined;
  let opening: Promise<McpConnection> | undefined;
  let restarts = 0;
  let refresh: "none" | "waiting" | "running" | "again" = "none";
  let refreshTimer: Timer | undefined;

  function setTools(next: readonly ListedTool[]): void {
    tools = next;
    parts.changed();
  }

  function drop(connection: McpConnection): void {
    if (current === connection) current = undefined;
    const closing = connection.close().finally(() => closings.delete(closing));
    closings.add(closing);
  }

  async function start(): Promise<McpConnection> {
    const library = await loadLibrary();
    end.signal.throwIfAborted();
    const connection: McpConnection = createConnection({ ...spec, name: label }, library, {
      cwd: parts.cwd,
      directories: parts.directories,
      mask,
      log: parts.log,
      closed: () => lost(connection),
      toolsChanged: () => changed(connection),
    });
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), parts.spawnTimeoutMs);
    const signal = AbortSignal.any([late.signal, end.signal]);
    try {
      await connection.open(signal);
      setTools(await connection.listTools(signal));
    } catch (error) {
      drop(connection);
      if (late.signal.aborted) throw new Error(`it was not ready within ${parts.spawnTimeoutMs} ms`);
      const ending = connection.ending();
      if (ending === undefined) throw error;
      const words = connection.lastWords();
      throw new Error(`it ${ending} before it was ready${words === "" ? "" : `: ${words}`}`);
    } finally {
      clearTimeout(timer);
    }
    if (end.signal.aborted) drop(connection);
    end.signal.throwIfAborted();
    current = connection;
    return connection;
  }

  /** The open connection, or a new one. Rejects with an Error whose message names the server. */
  function usable(): Promise<McpConnection> {
    if (current !== undefined) return Promise.resolve(current);
    if (opening !== undefined) return opening;
    if (end.signal.aborted) return Promise.reject(new Error(`MCP server ${label} has been closed`));
    if (restarts >= MAX_RESTARTS)
      return Promise.reject(new Error(`MCP server ${label} has ended too often and is not started again`));
    restarts++;
    opening = start()
      .catch((error) => {
        if (restarts >= MAX_RESTARTS) giveUp();
        throw new Error(named(troubleText(error, mask)), { cause: error });
      })
      .finally(() => {
        opening = undefined;
      });
    return opening;
  }

  function named(text: string): string {
    return text.startsWith("MCP server ") ? text : `MCP server ${label}: ${text}`;
  }

  function giveUp(): void {
    if (end.signal.aborted || tools.length === 0) return;
    setTools([]);
    parts.trouble(`MCP server ${label} has ended too often; its tools are no longer offered`);
  }

  function lost(connection: McpConnection): void {
    if (current !== connection) return;
    current = undefined;
    if (end.signal.aborted) return;
    parts.log("warn", `MCP server ${label} ${connection.ending() ?? "has closed the connection"}`);
    drop(connection);
    if (restarts >= MAX_RESTARTS) giveUp();
  }

  function changed(connection: McpConnection): void {
    if (end.signal.aborted || current !== connection) return;
    if (refresh === "running") refresh = "again";
    if (refresh !== "none") return;
    refresh = "waiting";
    refreshTimer = setTimeout(async () => {
      refresh = "running";
      try {
        setTools(await connection.listTools(end.signal));
      } catch (error) {
        // The old list is better than none.
        if (current === connection && !end.signal.aborted)
          parts.log("warn", named(`its changed list of tools could not be read: ${troubleText(error, mask)}`));
      }
      const isAgain = (refresh as string) === "again";
      refresh = "none";
      if (isAgain) changed(connection);
    }, REFRESH_AFTER_MS);
  }

  async function call(tool: string, args: JsonObject, signal: AbortSignal): Promise<ToolOutcome> {
    for (let attempt = 1; ; attempt++) {
      let connection: McpConnection;
      try {
        const coming = usable();
        await orAborted(coming, signal);
        signal.throwIfAborted();
        connection = await coming;
      } catch (error) {
        signal.throwIfAborted();
        return failure(troubleText(error, mask));
      }
      try {
        const result = await connection.callTool(tool, args, signal);
        restarts = 0;
        return readToolResult(result);
      } catch (error) {
        signal.throwIfAborted();
        // The server has not looked at a message of a session that it does not know.
        if (attempt === 1 && isLostSession(error)) {
          drop(connection);
          continue;
        }
        const text = explain(error, connection);
        // The stream that answers come by may be found broken later than this; the next call is not to wait for it.
        if (spec.type === "sse" && isSendingTrouble(error)) drop(connection);
        return failure(text);
      }
    }
  }

  function explain(error: unknown, connection: McpConnection): string {
    if (current !== connection) {
      const how = connection.ending() ?? "has closed the connection";
      const next = restarts < MAX_RESTARTS ? "It is started again with the next call." : "It is not started again.";
      return `MCP server ${label} ${how} while it worked on this call. ${next}`;
    }
    if ((error as { code?: unknown }).code === "REQUEST_TIMEOUT")
      return `MCP server ${label} has not answered within ${CALL_TIMEOUT_MS / 60_000} minutes; the call was cancelled.`;
    return named(troubleText(error, mask));
  }

  return {
    async open() {
      try {
        await usable();
      } catch (error) {
        if (!end.signal.aborted) parts.trouble(troubleText(error, mask));
      }
      // The first start is no restart.
      restarts = 0;
    },
    tools: () => tools,
    call,
    async close() {
      end.abort(new Error("the session is closed"));
      clearTimeout(refreshTimer);
      tools = [];
      if (current !== undefined) drop(current);
      await opening?.catch(() => undefined);
      await Promise.all(closings);
    },
  };
}

function failure(text: string): ToolOutcome {
  return { parts: [{ type: "text", text }], isError: true };
}

/** Not what the server has answered, nor that it has not answered. */
function isSendingTrouble(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return typeof code !== "number" && code !== "REQUEST_TIMEOUT";
}

/** The protocol says 404; some servers say that a message of a session they do not know is a bad request. */
function isLostSession(error: unknown): boolean {
  const { status, message } = error as { status?: unknown; message?: unknown };
  return status === 404 || (status === 400 && typeof message === "string" && /session/i.test(message));
}
