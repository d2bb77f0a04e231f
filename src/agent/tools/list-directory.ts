// Lists a folder, by ls in a terminal of the editor: ACP has no request of its own for it.

import type { AgentTool } from "../tool.ts";
import { FOLDER_SCHEMA, folderOf } from "./file-arguments.ts";
import { lookingOutcome } from "./looking-outcome.ts";
import { runInTerminal } from "./terminal-run.ts";

const TIMEOUT_MS = 30_000;

export const listDirectory: AgentTool = {
  name: "list_directory",
  description: "Lists the files and folders in a folder, with types and sizes.",
  parameters: { type: "object", properties: { path: FOLDER_SCHEMA }, additionalProperties: false },
  kind: "read",

  preview(args, { cwd }) {
    const { absolute, shown } = folderOf(args, cwd);
    return { title: `List ${shown}`, locations: [{ path: absolute, isFolder: true }] };
  },

  async run(args, context) {
    const { absolute } = folderOf(args, context.cwd);
    const command = { command: "ls", args: ["-la", "--", absolute], cwd: context.cwd };
    return lookingOutcome(await runInTerminal(command, TIMEOUT_MS, context), "The folder is empty.");
  },
};
