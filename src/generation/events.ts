// A streamed answer as events. Order: start, then parts, then usage (any time, the last one counts), finish at the end.
//
// Every part has an index of its own, counted from 0 without gaps in the order of part-start. A part is open from its
// part-start to its part-end. Of text, reasoning and refusal parts at most one is open at a time and none while a tool
// call is open; several tool calls may be open together, their arguments interleaved. Decoders guarantee this, encoders
// rely on it.
//
// `own` and `unknown` are what only the backend's own format has a word for. Decoders tell them where they are asked to,
// because the client speaks that format too (protocols/seam.ts); of another format they mean nothing.

import type { JsonObject } from "../lib/json.ts";
import type { Citation, ContentPart, ProtocolName, ReasoningPart, SearchResultPart, ToolCallPart } from "./content.ts";
import type { Failure, Finish } from "./result.ts";
import type { Usage } from "./usage.ts";

/** What is known of a part when it begins. Parts in the last line come whole and have no deltas. */
export type PartStart =
  | { type: "text" }
  | { type: "refusal" }
  | Pick<ReasoningPart, "type" | "itemId">
  | Omit<ToolCallPart, "arguments" | "cache">
  | SearchResultPart
  | Extract<ContentPart, { type: "opaque" | "image" | "audio" }>;

export type GenerationEvent =
  | { type: "start"; id: string; model: string; createdAt: number }
  | { type: "part-start"; index: number; part: PartStart }
  /** Text of a text, refusal or reasoning part, or the next piece of a tool call's arguments. Never empty. */
  | { type: "delta"; index: number; text: string; own?: JsonObject }
  /** Belongs to the reasoning (or, for Gemini, text) part; comes before its part-end. */
  | { type: "seal"; index: number; origin: ProtocolName; signature?: string; sealed?: string }
  | { type: "citation"; index: number; citation: Citation }
  | { type: "part-end"; index: number }
  /** The counts so far; replaces earlier ones, nothing is added up. */
  | { type: "usage"; usage: Usage; own?: JsonObject }
  /** The model is done; only usage may follow. */
  | { type: "finish"; finish: Finish; own?: JsonObject }
  /** The backend reported an error; nothing follows. */
  | { type: "failure"; failure: Failure }
  /** An event that only its own format knows, as its backend wrote it. */
  | { type: "unknown"; value: JsonObject };
