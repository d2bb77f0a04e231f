// Searches files by their text or their name, by find and grep in a terminal of the editor. Patterns and paths are
// arguments of their own: no shell reads them.

import type { JsonObject } from "../../lib/json.ts";
import { type AgentTool, ToolError } from "../tool.ts";
import { FOLDER_SCHEMA, folderOf, textOf } from "./file-arguments.ts";
import { lookingOutcome } from "./looking-outcome.ts";
import { runInTerminal } from "./terminal-run.ts";

const TIMEOUT_MS = 60_000;

/** Folders that are not worth a search and take longest. */
const LEFT_OUT = [".git", "node_modules"] as const;

export const searchFiles: AgentTool = {
  name: "search_files",
  description: `Searches the files of a folder and of all folders in it: by a pattern in their text, by their name, or both. Folders ${LEFT_OUT.join(" and ")} are left out.`,
  parameters: {
    type: "object",
    properties: {
      pattern: { type: "string", description: "Extended regular expression (grep -E) for lines of text." },
      name: { type: "string", description: "Pattern for names of files, e.g. *.ts" },
      path: FOLDER_SCHEMA,
      ignore_case: { type: "boolean", description: "Whether capital and small letters are the same." },
    },
    additionalProperties: false,
  },
  kind: "search",

  preview(args, { cwd }) {
    const { pattern, name } = wishOf(args);
    const { absolute, shown } = folderOf(args, cwd);
    const what = [...(pattern === "" ? [] : [`"${pattern}"`]), ...(name === "" ? [] : [name])].join(" in ");
    return {
      title: `Search ${what}${shown === "." ? "" : ` in ${shown}`}`,
      locations: [{ path: absolute, isFolder: true }],
    };
  },

  async run(args, context) {
    const { absolute } = folderOf(args, context.cwd);
    const command = { command: "find", args: findArguments(absolute, wishOf(args)), cwd: context.cwd };
    return lookingOutcome(await runInTerminal(command, TIMEOUT_MS, context), "Nothing was found.");
  },
};

interface WantedFiles {
  pattern: string;
  name: string;
  ignoresCase: boolean;
}

function wishOf(args: JsonObject): WantedFiles {
  const wish = { pattern: textOf(args.pattern), name: textOf(args.name), ignoresCase: args.ignore_case === true };
  if (wish.pattern === "" && wish.name === "")
    throw new ToolError("Nothing to search for: give a pattern, a name, or both.");
  return wish;
}

/** POSIX, but for -I (no binary files), which GNU, BSD and busybox know. */
function findArguments(folder: string, { pattern, name, ignoresCase }: WantedFiles): string[] {
  const skipped = LEFT_OUT.flatMap((each, index) => [...(index === 0 ? [] : ["-o"]), "-name", each]);
  const named = name === "" ? [] : ["-name", name];
  const found = ["-type", "f", ...named];
  if (pattern === "") return [folder, "(", ...skipped, ")", "-prune", "-o", ...found, "-print"];
  // A second file makes grep name the files, also where there is one only.
  const grep = ["grep", ignoresCase ? "-nEIi" : "-nEI", "-e", pattern, "--", "/dev/null", "{}", "+"];
  return [folder, "(", ...skipped, ")", "-prune", "-o", ...found, "-exec", ...grep];
}
