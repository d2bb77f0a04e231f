// The agent's own tools, as far as the editor can do what they need.

import type { EditorAbilities } from "../editor.ts";
import type { AgentTool } from "../tool.ts";
import { editTextFile } from "./edit-text-file.ts";
import { listDirectory } from "./list-directory.ts";
import { readTextFile } from "./read-text-file.ts";
import { runCommand } from "./run-command.ts";
import { searchFiles } from "./search-files.ts";
import { updatePlan } from "./update-plan.ts";
import { writeTextFile } from "./write-text-file.ts";

type Need = keyof EditorAbilities;

const TOOLS: readonly (readonly [AgentTool, readonly Need[]])[] = [
  [readTextFile, ["readTextFile"]],
  [listDirectory, ["terminal"]],
  [searchFiles, ["terminal"]],
  [editTextFile, ["readTextFile", "writeTextFile"]],
  [writeTextFile, ["writeTextFile"]],
  [runCommand, ["terminal"]],
  [updatePlan, []],
];

export function ownTool(name: string): AgentTool | undefined {
  return TOOLS.find(([tool]) => tool.name === name)?.[0];
}

export function ownTools(can: EditorAbilities): AgentTool[] {
  return TOOLS.filter(([, needs]) => needs.every((need) => can[need])).map(([tool]) => tool);
}
