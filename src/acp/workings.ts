// What does the work behind the protocol: turns, MCP servers and the bridge to them. Loaded when it is first needed.

import type { TurnEnd, TurnParts } from "../agent/agent.ts";
import type { McpBridge, McpBridgeParts, OpenMcpServers } from "../mcp/servers.ts";

/** Tests give their own; the defaults are the real ones. */
export interface AcpWorkings {
  runTurn?(parts: TurnParts): Promise<TurnEnd>;
  openMcpServers?: OpenMcpServers;
  createMcpBridge?(parts: McpBridgeParts): McpBridge;
}

export async function turnRunner({ runTurn }: AcpWorkings): Promise<NonNullable<AcpWorkings["runTurn"]>> {
  return runTurn ?? (await import("../agent/turn.ts")).runTurn;
}

export async function serverOpener({ openMcpServers }: AcpWorkings): Promise<OpenMcpServers> {
  return openMcpServers ?? (await import("../mcp/open-servers.ts")).openMcpServers;
}

export async function bridgeMaker({
  createMcpBridge,
}: AcpWorkings): Promise<NonNullable<AcpWorkings["createMcpBridge"]>> {
  return createMcpBridge ?? (await import("../mcp/bridge.ts")).createMcpBridge;
}
