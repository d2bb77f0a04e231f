// What an agent tells while it works, in its own words: src/acp writes them for the editor, and keeps them for a replay.

import type { ImagePart, TextPart } from "../generation/content.ts";
import type { JsonObject } from "../lib/json.ts";

/** Kinds of tools in ACP. */
export type ToolKind =
  | "read"
  | "edit"
  | "delete"
  | "move"
  | "search"
  | "execute"
  | "think"
  | "fetch"
  | "switch_mode"
  | "other";

type ToolStatus = "pending" | "in_progress" | "completed" | "failed";

/** A place that a tool reads or changes. */
export interface ToolLocation {
  /** Absolute. */
  path: string;
  /** From 1. */
  line?: number;
  /** The path is that of a folder. */
  isFolder?: true;
}

export type ToolContent =
  | { type: "part"; part: TextPart | ImagePart }
  /** `oldText` undefined: the file is new. */
  | { type: "diff"; path: string; oldText?: string; newText: string }
  /** A terminal of the editor, which shows its output while it runs. */
  | { type: "terminal"; terminalId: string };

/** A call of a tool as the editor shows it. */
export interface ToolCallView {
  toolCallId: string;
  /** One line for people, e.g. "Read src/main.ts". */
  title: string;
  kind: ToolKind;
  status: ToolStatus;
  content: ToolContent[];
  locations: ToolLocation[];
  rawInput?: JsonObject;
  rawOutput?: unknown;
}

export interface PlanEntry {
  content: string;
  priority: "high" | "medium" | "low";
  status: "pending" | "in_progress" | "completed";
}

/**
 * Order within a turn: a tool-call comes before its changes; the last change of a call has the status completed or failed;
 * nothing comes after the turn's promise has settled.
 */
export type Update =
  | { type: "text"; text: string }
  | { type: "image"; part: ImagePart }
  /** The next piece of what the model thinks. */
  | { type: "thought"; text: string }
  | { type: "tool-call"; call: ToolCallView }
  /** Only what has changed; content and locations replace what was there. */
  | { type: "tool-call-change"; toolCallId: string; change: Partial<Omit<ToolCallView, "toolCallId">> }
  /** Holds the whole plan each time. */
  | { type: "plan"; entries: PlanEntry[] }
  /** Tokens of the conversation so far, and how many the model takes. */
  | { type: "usage"; used: number; size: number; cost?: { amount: number; currency: string } }
  /** Something the person should know that is no answer, e.g. that old tool results were shortened. */
  | { type: "notice"; text: string; severity?: "info" | "warning" };
