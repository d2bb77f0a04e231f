// Which tools a model is offered: the agent's own ones, as far as the editor can do what they need, then those of servers.

import { nearest } from "../lib/nearest.ts";
import type { Mode, TurnParts } from "./agent.ts";
import { denial } from "./permissions.ts";
import type { AgentTool } from "./tool.ts";
import { ownTools } from "./tools/own-tools.ts";

export interface ToolSet {
  /** Those that may be called in the mode, at least after a question. */
  offered: readonly AgentTool[];
  /** Also those that are not offered: their calls are denied with a reason. */
  find(name: string): AgentTool | undefined;
  /** Told to a model that calls what is not there. */
  unknown(name: string): string;
}

/** OpenAI takes at most this many tools in a request. */
const MAX_TOOLS = 128;
const MAX_NAMES_TOLD = 64;

export function toolSet(
  { editor, serverTools, permission }: Pick<TurnParts, "editor" | "serverTools" | "permission">,
  mode: Mode,
): ToolSet {
  const byName = new Map<string, AgentTool>();
  for (const tool of [...ownTools(editor.can), ...serverTools()]) {
    if (!byName.has(tool.name)) byName.set(tool.name, tool);
  }
  const allowed = [...byName.values()].filter((tool) => denial(tool, { mode, permission }) === undefined);
  // A plan is of use beside other tools only, and some models take no tools at all.
  const isUseful = allowed.some(({ kind }) => kind !== "think");
  const offered = isUseful ? allowed.slice(0, MAX_TOOLS) : [];
  return {
    offered,
    find: (name) => byName.get(name),
    unknown(name) {
      const names = offered.map((tool) => tool.name);
      if (names.length === 0) return `There is no tool ${quoted(name)}, nor any other: answer without tools.`;
      const meant = nearest(name, names);
      const hint = meant === undefined ? "" : ` Did you mean ${meant}?`;
      const more = names.length > MAX_NAMES_TOLD ? ` and ${names.length - MAX_NAMES_TOLD} more` : "";
      return `There is no tool ${quoted(name)}.${hint} The tools are: ${names.slice(0, MAX_NAMES_TOLD).join(", ")}${more}.`;
    },
  };
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 80));
}
