// A request for an answer, independent of any wire format.

import type { JsonObject } from "../lib/json.ts";
import type { Message, ProtocolName, TextPart } from "./content.ts";
import type { Tool, ToolChoice } from "./tools.ts";

/** Every effort that any wire format names; what a backend accepts is settled in reasoning-effort.ts. */
export const EFFORTS = ["none", "minimal", "auto", "low", "medium", "high", "xhigh", "max"] as const;

export type Effort = (typeof EFFORTS)[number];

/** What the target of a route may set in place of the client. */
export type RequestSetting = "temperature" | "top_p" | "max_output_tokens" | "reasoning_effort" | "seed";

export interface ReasoningWish {
  effort?: Effort;
  /** Most tokens to think with (Messages: thinking.budget_tokens; Gemini: thinkingBudget). */
  budgetTokens?: number;
  /** false: thinking is switched off (Messages: thinking.type "disabled"). */
  enabled?: boolean;
  /** Whether the client wants to read the thoughts; undefined: the protocol's default. */
  visible?: boolean;
  /** Responses: the sealed form is asked for (include reasoning.encrypted_content). */
  sealed?: boolean;
}

export type ResponseFormat =
  | { type: "text" }
  /** Any JSON object. */
  | { type: "json" }
  | { type: "json-schema"; name: string; description?: string; schema: JsonObject; strict?: boolean };

export interface Sampling {
  temperature?: number;
  topP?: number;
  topK?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  seed?: number;
  stop?: string[];
  /** Number of choices; 1 when left out. */
  choices?: number;
  logprobs?: boolean;
  topLogprobs?: number;
  logitBias?: JsonObject;
}

export interface GenerationRequest {
  model: string;
  /** Instructions before the conversation, in order. */
  system: TextPart[];
  messages: Message[];
  tools: Tool[];
  toolChoice?: ToolChoice;
  /** false: at most one tool call per turn. */
  parallelToolCalls?: boolean;
  sampling: Sampling;
  maxOutputTokens?: number;
  reasoning: ReasoningWish;
  responseFormat?: ResponseFormat;
  /** "low", "medium" or "high". */
  verbosity?: string;
  /** Who asks, for the vendor's abuse checks. */
  user?: string;
  metadata?: JsonObject;
  promptCacheKey?: string;
  stream: boolean;
  /** What the client sent. Read only by encoders of the same protocol. */
  origin: { protocol: ProtocolName; body: JsonObject };
  /**
   * Members of the client's body, in its own spelling, that the neutral model has no field for. Towards another protocol
   * each is dropped and listed.
   */
  extensions: JsonObject;
}

/** Of a request that no client has sent: the format that says least of its own, for the words of refusals and losses. */
export const NO_CLIENT: Readonly<GenerationRequest["origin"]> = { protocol: "chat", body: {} };
