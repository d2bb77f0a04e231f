// Reads a file as the editor has it, changes that are not saved yet included.

import type { AgentTool } from "../tool.ts";
import { countOf, fileOf, PATH_SCHEMA } from "./file-arguments.ts";

/** UTF-16 code units of one read. */
const MAX_LENGTH = 96 * 1024;
const MAX_LINES = 4_000;

export const readTextFile: AgentTool = {
  name: "read_text_file",
  description:
    "Reads a text file of the project, as the editor has it. Long files come in pieces: the end of a piece says how to read on.",
  parameters: {
    type: "object",
    properties: {
      path: PATH_SCHEMA,
      line: { type: "integer", description: "First line to read, counted from 1." },
      limit: { type: "integer", description: "Most lines to read." },
    },
    required: ["path"],
    additionalProperties: false,
  },
  kind: "read",

  preview(args, { cwd }) {
    const { absolute, shown } = fileOf(args, cwd);
    const line = countOf(args.line, "line");
    const limit = countOf(args.limit, "limit");
    const first = line ?? 1;
    const range =
      limit !== undefined
        ? ` (lines ${first} to ${first + limit - 1})`
        : line === undefined
          ? ""
          : ` (from line ${line})`;
    return { title: `Read ${shown}${range}`, locations: [{ path: absolute, ...(line !== undefined && { line }) }] };
  },

  async run(args, { editor, cwd, signal }) {
    const { absolute } = fileOf(args, cwd);
    const line = countOf(args.line, "line");
    const limit = Math.min(countOf(args.limit, "limit") ?? MAX_LINES, MAX_LINES);
    // One line more than is shown tells whether there is more.
    const file = { path: absolute, limit: limit + 1, ...(line !== undefined && { line }) };
    const text = await editor.readTextFile(file, signal);
    return { parts: [{ type: "text", text: pieceOf(text, line ?? 1, limit) }] };
  },
};

/** Whole lines, as many as fit, and a note how to read on. */
function pieceOf(text: string, firstLine: number, limit: number): string {
  if (text === "") return firstLine === 1 ? "(The file is empty.)" : `(The file has no line ${firstLine}.)`;
  const lines = text.split(/(?<=\n)/);
  let taken = 0;
  let length = 0;
  for (const line of lines) {
    if (taken >= limit || (taken > 0 && length + line.length > MAX_LENGTH)) break;
    taken++;
    length += line.length;
  }
  const piece = lines.slice(0, taken).join("");
  if (taken === lines.length) return piece;
  const next = firstLine + taken;
  return `${piece}${piece.endsWith("\n") ? "" : "\n"}[The file goes on: read it again with line ${next}.]`;
}
