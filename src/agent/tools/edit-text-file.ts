// Replaces a text at exactly one place of a file; the person sees what changes before it is written.

import type { JsonObject } from "../../lib/json.ts";
import { type AgentTool, type ToolContext, ToolError } from "../tool.ts";
import { fileOf, PATH_SCHEMA, textOf } from "./file-arguments.ts";
import { diffOf } from "./file-diff.ts";
import { replaceOnce } from "./replace-once.ts";

export const editTextFile: AgentTool = {
  name: "edit_text_file",
  description:
    "Replaces a text at exactly one place of a file. old_text must be in the file once, letter for letter, with all spaces and line breaks; add lines around it until it is.",
  parameters: {
    type: "object",
    properties: {
      path: PATH_SCHEMA,
      old_text: { type: "string", description: "The text to replace, exactly as it is in the file." },
      new_text: { type: "string", description: "What stands there afterwards; empty to remove the text." },
    },
    required: ["path", "old_text", "new_text"],
    additionalProperties: false,
  },
  kind: "edit",

  async preview(args, context) {
    const { absolute, shown, before, after, line } = await edited(args, context);
    return {
      title: `Edit ${shown}`,
      locations: [{ path: absolute, line }],
      content: [diffOf(absolute, before, after)],
    };
  },

  /** The file is read again: it may have changed while the person was asked. */
  async run(args, context) {
    const { absolute, shown, before, after, line } = await edited(args, context);
    await context.editor.writeTextFile({ path: absolute, content: after }, context.signal);
    return {
      parts: [{ type: "text", text: `Changed: ${shown}, at line ${line}.` }],
      content: [diffOf(absolute, before, after)],
      locations: [{ path: absolute, line }],
    };
  },

  /** The rest of the file is not known any more. */
  replayed(args, path) {
    return [diffOf(path, textOf(args.old_text), textOf(args.new_text))];
  },
};

async function edited(args: JsonObject, { editor, cwd, signal }: ToolContext) {
  const file = fileOf(args, cwd);
  const before = await editor.readTextFile({ path: file.absolute }, signal);
  try {
    const { text, line } = replaceOnce(before, textOf(args.old_text), textOf(args.new_text));
    return { ...file, before, after: text, line };
  } catch (error) {
    throw error instanceof ToolError ? new ToolError(`${file.shown} was not changed: ${error.message}`) : error;
  }
}
