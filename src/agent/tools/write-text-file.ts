// Writes a whole file; the person sees what changes before it is written.

import { EditorError } from "../editor.ts";
import type { AgentTool, ToolContext } from "../tool.ts";
import { fileOf, PATH_SCHEMA, textOf } from "./file-arguments.ts";
import { diffOf } from "./file-diff.ts";

export const writeTextFile: AgentTool = {
  name: "write_text_file",
  description:
    "Writes a whole text file: a new one, or in place of all that was in it. For a change in a file that exists an edit is better.",
  parameters: {
    type: "object",
    properties: { path: PATH_SCHEMA, content: { type: "string", description: "The whole text of the file." } },
    required: ["path", "content"],
    additionalProperties: false,
  },
  kind: "edit",

  async preview(args, context) {
    const { absolute, shown } = fileOf(args, context.cwd);
    const oldText = await currentText(absolute, context);
    return {
      title: `Write ${shown}`,
      locations: [{ path: absolute }],
      content: [diffOf(absolute, oldText, textOf(args.content))],
    };
  },

  async run(args, context) {
    const { absolute, shown } = fileOf(args, context.cwd);
    const content = textOf(args.content);
    const before = await currentText(absolute, context);
    if (before === content) return { parts: [{ type: "text", text: `${shown} has this text already.` }] };
    await context.editor.writeTextFile({ path: absolute, content }, context.signal);
    const lines = content === "" ? 0 : content.split("\n").length - (content.endsWith("\n") ? 1 : 0);
    return {
      parts: [{ type: "text", text: `Written: ${shown}, ${lines} ${lines === 1 ? "line" : "lines"}.` }],
      content: [diffOf(absolute, before, content)],
    };
  },

  /** The earlier content of the file is no longer known. */
  replayed(args, path) {
    return [diffOf(path, undefined, textOf(args.content))];
  },
};

/** Undefined where there is no such file, or where it cannot be read. */
async function currentText(path: string, { editor, signal }: ToolContext): Promise<string | undefined> {
  if (!editor.can.readTextFile) return undefined;
  try {
    return await editor.readTextFile({ path }, signal);
  } catch (error) {
    if (error instanceof EditorError) return undefined;
    throw error;
  }
}
