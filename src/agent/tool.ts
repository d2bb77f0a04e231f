// A tool that the agent offers to a model: its own ones (tools/) and those of MCP servers (src/mcp).

import type { DocumentPart, ImagePart, TextPart } from "../generation/content.ts";
import type { JsonObject } from "../lib/json.ts";
import type { Editor } from "./editor.ts";
import type { ToolContent, ToolKind, ToolLocation } from "./updates.ts";

/** Shown to the person who is asked for permission, before the call runs. */
export interface ToolPreview {
  /** A single line. */
  title: string;
  locations?: ToolLocation[];
  /** For example the diff that the call would make. */
  content?: ToolContent[];
}

export interface ToolOutcome {
  /** The result for the model. */
  parts: (TextPart | ImagePart | DocumentPart)[];
  isError?: boolean;
  /** Shown to the person; `parts` are shown if it is left out. */
  content?: ToolContent[];
  locations?: ToolLocation[];
  /** For programs that look at the call. */
  rawOutput?: unknown;
}

export interface ToolContext {
  editor: Editor;
  /** Absolute; where relative paths begin. */
  cwd: string;
  signal: AbortSignal;
  /** While it runs: e.g. the terminal in which it does. */
  show(content: ToolContent[]): void;
}

export interface AgentTool {
  /** Unique within a session, `[A-Za-z0-9_-]{1,64}`. */
  name: string;
  description: string;
  /** JSON Schema of the arguments, an object. */
  parameters: JsonObject;
  kind: ToolKind;
  /** The server that offers the tool says that it changes something. */
  isChanging?: true;
  /** May read, changes nothing. Trouble (a file that is not there) throws ToolError, and the call fails without a question. */
  preview(args: JsonObject, context: ToolContext): Promise<ToolPreview> | ToolPreview;
  /** Trouble that the model should know of is an outcome with `isError` or a ToolError; only the signal's reason goes further. */
  run(args: JsonObject, context: ToolContext): Promise<ToolOutcome>;
  /**
   * Content of a successful call at this path when a conversation is shown again; without this function the result is shown.
   */
  replayed?(args: JsonObject, path: string): ToolContent[];
}

/** Told to the model as the call's result: says what is wrong and what to do instead. */
export class ToolError extends Error {
  override readonly name = "ToolError";
}
