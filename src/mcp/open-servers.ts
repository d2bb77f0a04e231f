// The MCP servers of a session, opened side by side, and their tools as the agent's. (Contract: servers.ts.)

import type { AgentTool } from "../agent/tool.ts";
import { oneLine } from "./masked.ts";
import type { OpenMcpServers } from "./servers.ts";
import { createSupervisedServer } from "./supervised-server.ts";
import { createToolNames, serverLabels } from "./tool-names.ts";

export const openMcpServers: OpenMcpServers = (specs, { cwd, directories = [], spawnTimeoutMs, trouble, log }) => {
  const names = createToolNames();
  const labels = serverLabels(specs.map(({ name }) => oneLine(name, 100)));
  let offered: readonly AgentTool[] | undefined;

  const servers = specs.map((spec, index) => {
    const label = labels[index] as string;
    const server = createSupervisedServer(spec, {
      label,
      cwd,
      directories,
      spawnTimeoutMs,
      trouble: (message) => trouble(spec.name, message),
      log,
      changed: () => {
        offered = undefined;
      },
    });
    return { label, ...server };
  });

  function allTools(): AgentTool[] {
    return servers.flatMap(({ label, tools, call }) =>
      tools().map(({ name, description, parameters, isChanging }) => ({
        name: names.nameOf(label, name),
        description,
        parameters,
        kind: "other" as const,
        ...(isChanging && { isChanging }),
        // The name that is called, not a title, with which a server could say anything to the user.
        preview: () => ({ title: oneLine(`${label}: ${name}`, 200) }),
        run: (args, { signal }) => call(name, args, signal),
      })),
    );
  }

  return {
    tools() {
      offered ??= allTools();
      return offered;
    },
    opened: Promise.all(servers.map(({ open }) => open())).then(() => undefined),
    async close() {
      await Promise.all(servers.map(({ close }) => close()));
      offered = undefined;
    },
  };
};
