// What a session's turn is: the words of a person in, updates out, until the model is done.

import type { ContentPart, Message } from "../generation/content.ts";
import type { GenerationEvent } from "../generation/events.ts";
import type { Effort, GenerationRequest } from "../generation/request.ts";
import type { Editor } from "./editor.ts";
import type { Remembered } from "./remembered.ts";
import type { AgentTool } from "./tool.ts";
import type { ToolKind } from "./updates.ts";

/** Asks a model: the gateway's neutral entry. Throws GatewayError; trouble on the way is a failure event. */
export interface ModelAccess {
  generate(request: GenerationRequest, call: { signal: AbortSignal }): AsyncGenerator<GenerationEvent, void>;
  /** Most tokens of prompt and answer; undefined: not known. */
  contextWindow(model: string): number | undefined;
  /** false: it reads text only, so that it gets images of the conversation in words. Undefined: not known. */
  readsImages?(model: string): boolean | undefined;
}

/** How large a session's conversation is to its model, as far as its answers have told; the turns keep it up to date. */
export interface ContextMeasure {
  /** Tokens that models count for one that is estimated; at least 1. Begins with 1. */
  ratio: number;
  /** A model that has refused a conversation as too long, and how many estimated tokens it may be sent since. */
  refused?: { model: string; tokens: number };
}

export const MODES = ["code", "architect", "ask"] as const;

export type Mode = (typeof MODES)[number];

export type Permission = "allow" | "ask" | "deny";

/** Changes of these count from the next model call on. */
export interface SessionChoices {
  mode: Mode;
  model: string;
  effort?: Effort;
  temperature?: number;
  maxOutputTokens?: number;
}

/** Why a turn is over, as ACP names it. */
export type StopReason = "end_turn" | "max_tokens" | "max_turn_requests" | "refusal" | "cancelled";

export interface TurnEnd {
  stopReason: StopReason;
  /** All calls of models of this turn together; undefined where no backend counted. */
  usage?: { input: number; output: number; reasoning?: number; cacheRead?: number; cacheWrite?: number };
}

export interface TurnParts {
  /** The conversation; the turn appends to it, whole messages only, so that it is well-formed at every moment. */
  history: Message[];
  prompt: ContentPart[];
  /** Read again before each call of a model. */
  choices(): SessionChoices;
  /** All tools of the session's MCP servers at this moment; the agent adds its own. Read before each call of a model. */
  serverTools(): readonly AgentTool[];
  editor: Editor;
  model: ModelAccess;
  /** Policy of the configuration for a kind of tool. */
  permission(kind: ToolKind): Permission;
  /** One per session. */
  remembered: Remembered;
  /** One per session; undefined: each turn measures for itself. */
  measure?: ContextMeasure;
  /** One per session: sends its calls to where their beginning is cached. */
  promptCacheKey?: string;
  /** Absolute. */
  cwd: string;
  /** More folders of the project: what lies in them is not outside. Absolute. */
  directories?: readonly string[];
  /** Most model calls in one turn. */
  maxTurns: number;
  signal: AbortSignal;
  /** A message was appended to the history: for what is kept on the disk. */
  appended(message: Message): void;
  newId(): string;
}
