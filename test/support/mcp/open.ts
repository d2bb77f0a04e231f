// MCP servers of a session for tests: opened, called by the names that models see, closed, and nothing left of them.

import { tmpdir } from "node:os";
import type { Editor } from "../../../src/agent/editor.ts";
import type { ToolOutcome } from "../../../src/agent/tool.ts";
import type { JsonObject } from "../../../src/lib/json.ts";
import { openMcpServers } from "../../../src/mcp/open-servers.ts";
import type { McpServerSpec } from "../../../src/mcp/servers.ts";

export interface OpenOptions {
  spawnTimeoutMs?: number;
  cwd?: string;
  directories?: string[];
}

export function openServers(
  specs: McpServerSpec[],
  { spawnTimeoutMs = 20_000, cwd = tmpdir(), directories = [] }: OpenOptions = {},
) {
  const troubles: string[] = [];
  const log: string[] = [];
  const servers = openMcpServers(specs, {
    cwd,
    directories,
    spawnTimeoutMs,
    trouble: (server, message) => troubles.push(`${server}: ${message}`),
    log: (level, message) => log.push(`${level} ${message}`),
  });
  const names = () => servers.tools().map(({ name }) => name);

  async function call(
    name: string,
    args: JsonObject = {},
    signal = new AbortController().signal,
  ): Promise<ToolOutcome> {
    const tool = servers.tools().find((each) => each.name === name);
    if (tool === undefined) throw new Error(`no tool ${name} among ${names().join(", ")}`);
    const editor = undefined as unknown as Editor;
    return tool.run(args, { editor, cwd, signal, show: () => undefined });
  }

  /** The outcome's text, errors marked. */
  async function say(name: string, args: JsonObject = {}, signal?: AbortSignal): Promise<string> {
    const { parts, isError } = await call(name, args, signal);
    const text = parts.map((part) => (part.type === "text" ? part.text : `<${part.type}>`)).join("\n");
    return isError ? `error: ${text}` : text;
  }
  return { ...servers, troubles, log, names, call, say };
}
