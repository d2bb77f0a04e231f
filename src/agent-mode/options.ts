// The section acp as the agent reads it.

import type { AcpOptions } from "../acp/parts.ts";
import type { ConfigSnapshot } from "../config/compile/snapshot.ts";
import { resolveDataPath, resolvePath } from "../config/values/paths.ts";

/** Returns the same object for the same snapshot. */
export function agentOptionsOf(home: string | undefined): (snapshot: ConfigSnapshot) => AcpOptions {
  let made: { for: ConfigSnapshot; options: AcpOptions } | undefined;
  return (snapshot) => {
    if (made?.for !== snapshot) made = { for: snapshot, options: toOptions(snapshot, home) };
    return made.options;
  };
}

function toOptions({ settings, baseDir }: ConfigSnapshot, home: string | undefined): AcpOptions {
  const { acp, server } = settings;
  const dataDir = server.data_dir;
  const servers = Object.entries(acp.mcp.servers).map(([id, { command, args, env, cwd }]) => [
    id,
    {
      type: "stdio" as const,
      name: id,
      command: commandPath(command, baseDir, home),
      args,
      env,
      ...(cwd !== undefined && { cwd: resolvePath(cwd, baseDir, home) }),
    },
  ]);
  return {
    maxConcurrent: acp.max_concurrent,
    idleTimeoutMs: acp.idle_timeout,
    storagePath: acp.storage === "file" ? resolveDataPath(acp.storage_path, { dataDir, baseDir, home }) : undefined,
    maxTurns: acp.max_turns,
    permission: (kind) => acp.permissions[kind],
    mcp: {
      maxConnections: acp.mcp.max_connections,
      allowedServers: acp.mcp.allowed_servers,
      spawnTimeoutMs: acp.mcp.spawn_timeout,
      servers: Object.fromEntries(servers),
    },
  };
}

/** A name alone is looked for in PATH; a path is relative to the configuration, as every other one. */
function commandPath(command: string, baseDir: string, home: string | undefined): string {
  return command.includes("/") ? resolvePath(command, baseDir, home) : command;
}
