// One life of a connection to an MCP server: opened with the official client, its tools listed, calls made, closed.

import { pathToFileURL } from "node:url";
import type { Client, StandardSchemaV1, Transport } from "@modelcontextprotocol/client";
import { inTime, orAborted } from "../lib/abortable-delay.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import { SERVICE_NAME, VERSION } from "../names.ts";
import { createHttpTransport } from "./http-transports.ts";
import type { Library } from "./library.ts";
import { type ListedTool, readListedTool } from "./listed-tool.ts";
import { type Masking, oneLine } from "./masked.ts";
import type { McpServerSpec } from "./servers.ts";
import { createStdioTransport } from "./stdio-transport.ts";

interface McpConnectionParts {
  /** Absolute: the server's root, and where a process begins that names no folder. */
  cwd: string;
  /** Further roots of the server. */
  directories: readonly string[];
  mask: Masking;
  log(level: "info" | "warn", message: string): void;
  /** The connection is over, by itself or because it was closed. */
  closed(): void;
  /** The list of tools is another one now. */
  toolsChanged(): void;
}

export interface McpConnection {
  /** How its process ended, once it has. */
  ending(): string | undefined;
  /** The last line that its process has printed to its standard error, masked. */
  lastWords(): string;
  /** Rejects with an Error of the library, or with the signal's reason. */
  open(signal: AbortSignal): Promise<void>;
  listTools(signal: AbortSignal): Promise<ListedTool[]>;
  callTool(name: string, args: JsonObject, signal: AbortSignal): Promise<unknown>;
  /** Never throws. */
  close(): Promise<void>;
}

export const CALL_TIMEOUT_MS = 10 * 60_000;
const LIST_TIMEOUT_MS = 30_000;
/** The opening of a connection has a limit of its own, which comes first. */
const OPEN_TIMEOUT_MS = 60 * 60_000;
const GOODBYE_MS = 1_000;
const MAX_PAGES = 32;
const MAX_TOOLS = 512;
/** JSON of the schemas of all tools of a server. */
const MAX_SCHEMAS_LENGTH = 1024 * 1024;

/** The library's schemas would refuse a whole list for one odd tool, and compile what servers say of their results. */
const ANYTHING: StandardSchemaV1<unknown, unknown> = {
  "~standard": { version: 1, vendor: SERVICE_NAME, validate: (value) => ({ value }) },
};

/** Throws an Error where the description of the server cannot be right. */
export function createConnection(spec: McpServerSpec, library: Library, parts: McpConnectionParts): McpConnection {
  let lastWords = "";
  let ending = () => undefined as string | undefined;
  function log(level: "info" | "warn", message: string): void {
    lastWords = message.replace(`MCP server ${spec.name}: `, "");
    parts.log(level, message);
  }
  function createTransport(): Transport {
    if (spec.type !== "stdio") return createHttpTransport(spec, library, CALL_TIMEOUT_MS + 5_000);
    const transport = createStdioTransport({ ...spec, cwd: spec.cwd ?? parts.cwd }, { mask: parts.mask, log });
    ending = () => transport.ending;
    return transport;
  }

  const transport = createTransport();
  const client = new library.Client({ name: SERVICE_NAME, version: VERSION }, { capabilities: { roots: {} } });
  const roots = [parts.cwd, ...parts.directories].map((folder) => ({ uri: pathToFileURL(folder).href }));
  client.setRequestHandler("roots/list", () => ({ roots }));
  client.setNotificationHandler("notifications/tools/list_changed", () => parts.toolsChanged());
  client.onclose = parts.closed;
  // The library reconnects such a stream by itself, to a server that then does not know its client.
  client.onerror = (error) => {
    if (error instanceof library.SseError) void close();
  };

  async function close(): Promise<void> {
    try {
      if (transport instanceof library.StreamableHTTPClientTransport) await goodbye(transport);
      await transport.close();
    } catch {
      // The other side, or the end of its process, closes the connection then.
    }
  }

  return {
    ending: () => ending(),
    lastWords: () => lastWords,
    async open(signal) {
      // The library heeds the signal only once the transport is there.
      await orAborted(client.connect(transport, { signal, timeout: OPEN_TIMEOUT_MS }), signal);
      signal.throwIfAborted();
    },
    listTools: (signal) => listTools(client, signal, (message) => log("warn", `MCP server ${spec.name}: ${message}`)),
    callTool: (name, args, signal) =>
      client.request({ method: "tools/call", params: { name, arguments: args } }, ANYTHING, {
        signal,
        timeout: CALL_TIMEOUT_MS,
      }),
    close,
  };
}

/** Ends the session at the server, which may take no time that anybody waits for. */
async function goodbye(transport: { terminateSession(): Promise<void> }): Promise<void> {
  await inTime(transport.terminateSession(), GOODBYE_MS).catch(() => undefined);
}

async function listTools(client: Client, signal: AbortSignal, warn: (message: string) => void): Promise<ListedTool[]> {
  // The library's own method prints to standard output where a server has no tools.
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const tools = new Map<string, ListedTool>();
  let schemasLength = 0;
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const result = await client.request({ method: "tools/list", params }, ANYTHING, {
      signal,
      timeout: LIST_TIMEOUT_MS,
    });
    if (!isObject(result) || !Array.isArray(result.tools)) throw new Error("its list of tools was not understood");
    for (const value of result.tools) {
      const tool = readListedTool(value);
      if (tool === undefined) warn("it lists a tool without a usable name");
      else if (!tools.has(tool.name)) {
        schemasLength += JSON.stringify(tool.parameters).length;
        if (tools.size >= MAX_TOOLS || schemasLength > MAX_SCHEMAS_LENGTH) {
          warn(`it has more tools than can be offered; ${tools.size} are`);
          return [...tools.values()];
        }
        tools.set(tool.name, tool);
      }
    }
    if (typeof result.nextCursor !== "string" || result.nextCursor === cursor) return [...tools.values()];
    cursor = result.nextCursor;
  }
  warn(`its list of tools has more than ${MAX_PAGES} pages; ${tools.size} tools are offered`);
  return [...tools.values()];
}

/** The message for people and models: one line without secrets. */
export function troubleText(error: unknown, mask: Masking): string {
  return oneLine(mask(error instanceof Error ? error.message : String(error)), 300);
}
