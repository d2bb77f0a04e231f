// Runs a command in a terminal that the person sees.

import type { AgentTool } from "../tool.ts";
import { ToolError } from "../tool.ts";
import { countOf, folderOf, textOf } from "./file-arguments.ts";
import { runInTerminal } from "./terminal-run.ts";

const DEFAULT_TIMEOUT_S = 120;
const MAX_TIMEOUT_S = 600;

export const runCommand: AgentTool = {
  name: "run_command",
  description:
    "Runs a command line with sh in a terminal of the editor, waits for its end and gives its output and exit code. Only for commands that end by themselves and ask nothing.",
  parameters: {
    type: "object",
    properties: {
      command: { type: "string", description: "The command line." },
      cwd: { type: "string", description: "Folder to run it in; the project when left out." },
      timeout_s: {
        type: "integer",
        description: `Seconds after which it is killed; ${DEFAULT_TIMEOUT_S} when left out, at most ${MAX_TIMEOUT_S}.`,
      },
    },
    required: ["command"],
    additionalProperties: false,
  },
  kind: "execute",

  preview(args, { cwd }) {
    const command = textOf(args.command).trim();
    if (command === "") throw new ToolError("The command is empty.");
    const folder = folderOf({ path: args.cwd }, cwd);
    const isElsewhere = folder.shown !== ".";
    return {
      title: isElsewhere ? `${command} (in ${folder.shown})` : command,
      locations: isElsewhere ? [{ path: folder.absolute, isFolder: true }] : [],
    };
  },

  async run(args, context) {
    const timeoutS = Math.min(countOf(args.timeout_s, "timeout_s") ?? DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S);
    const { absolute: cwd } = folderOf({ path: args.cwd }, context.cwd);
    const line = { command: "sh", args: ["-c", textOf(args.command)], cwd };
    const { terminalId, output, isCut, exit, timedOut } = await runInTerminal(line, timeoutS * 1_000, context);
    const end = timedOut ? `Killed: it did not end within ${timeoutS} seconds.` : describeExit(exit);
    const cut = isCut ? ["[The beginning of the output was left out.]"] : [];
    const text = [end, ...cut, output === "" ? "(no output)" : output].join("\n");
    return {
      parts: [{ type: "text", text }],
      content: [{ type: "terminal", terminalId }],
      rawOutput: { exitCode: exit?.exitCode ?? null, signal: exit?.signal ?? null, timedOut, output },
      ...(timedOut && { isError: true }),
    };
  },
};

function describeExit(exit: { exitCode: number | null; signal: string | null } | undefined): string {
  if (exit === undefined) return "It is not known how it ended.";
  return exit.exitCode === null ? `Ended by signal ${exit.signal ?? "(unknown)"}.` : `Exit code: ${exit.exitCode}`;
}
