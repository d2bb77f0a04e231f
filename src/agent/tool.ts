// A tool that the agent offers to a model: its own ones (tools/) and those of MCP servers (src/mcp).

import type { DocumentPart, ImagePart, TextPart } from "../generation/content.ts";
import type { JsonObject } from "../lib/json.ts";
import type { Editor } from "./editor.ts";
import type { ToolContent, ToolKind, ToolLocation } from "./updates.ts";

/** What is known of a call before it runs: shown to the person who is asked for permission. */
export interface ToolPreview {
  /** One line. */
  title: string;
  locations?: ToolLocation[];
  /** E.g. the diff that it would make. */
  content?: ToolContent[];
}

export interface ToolOutcome {
  /** What the model reads. */
  parts: (TextPart | ImagePart | DocumentPart)[];
  isError?: boolean;
  /** What the person sees; undefined: the parts. */
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
  /** Who offers it says that it changes something. */
  isChanging?: true;
  /** May read, changes nothing. Trouble (a file that is not there) throws ToolError, and the call fails without a question. */
  preview(args: JsonObject, context: ToolContext): Promise<ToolPreview> | ToolPreview;
  /** Trouble that the model should know of is an outcome with `isError` or a ToolError; only the signal's reason goes further. */
  run(args: JsonObject, context: ToolContext): Promise<ToolOutcome>;
  /** What a call that went well at this place shows when the conversation is shown again; left out: its result. */
  replayed?(args: JsonObject, path: string): ToolContent[];
}

/** Told to the model as the call's result: says what is wrong and what to do instead. */
export class ToolError extends Error {
  override readonly name = "ToolError";
}
