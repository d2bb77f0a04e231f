// What a message consists of, independent of any wire format. A part holds what at least one format can say and another
// has to say differently; what a target cannot hold is listed by its encoder (dropped.ts), never lost in silence.

import type { JsonObject } from "../lib/json.ts";

/** The name of a wire format that Signalbox translates; protocols/registry.ts lists them. */
export type ProtocolName = string;

/** A wish that the prefix up to here be kept by the backend's prompt cache; only a hint. */
export interface CacheHint {
  ttl?: "5m" | "1h";
}

export type MediaSource =
  /** `data` is base64 without a data: prefix. */
  | { kind: "base64"; mediaType: string; data: string }
  | { kind: "url"; url: string; mediaType?: string }
  /** A file that the backend's vendor holds; only for the protocol that named it. */
  | { kind: "file"; fileId: string };

export interface TextPart {
  type: "text";
  text: string;
  citations?: Citation[];
  cache?: CacheHint;
  /** Gemini puts signatures on text as well. */
  signature?: string;
}

/** Where a statement comes from. Offsets are UTF-16 code units in the text of its part. */
export interface Citation {
  url?: string;
  title?: string;
  citedText?: string;
  startIndex?: number;
  endIndex?: number;
  /** The citation as its own protocol wrote it. */
  origin?: { protocol: ProtocolName; value: JsonObject };
}

export interface ImagePart {
  type: "image";
  source: MediaSource;
  /** "low", "high", "auto" or "original". */
  detail?: string;
  cache?: CacheHint;
}

export interface DocumentPart {
  type: "document";
  /** Plain text documents are base64 with media type text/plain. */
  source: MediaSource;
  /** Usually the file name. */
  title?: string;
  context?: string;
  /** Whether the model is asked to cite from it. */
  citations?: boolean;
  cache?: CacheHint;
}

export interface AudioPart {
  type: "audio";
  /** audio/wav, audio/mpeg, ... */
  source: MediaSource;
}

export interface VideoPart {
  type: "video";
  source: MediaSource;
}

/** What a model thought before it answered. */
export interface ReasoningPart {
  type: "reasoning";
  /** May be empty where only a signature or a sealed form is given. */
  text: string;
  /** Proof of origin, to be replayed unchanged to the protocol that made it. */
  signature?: string;
  /** A sealed form: Messages' redacted_thinking.data or Responses' encrypted_content. */
  sealed?: string;
  /** The protocol that made signature or sealed; undefined when the part came without either. */
  origin?: ProtocolName;
  /** Responses: id of the reasoning item. */
  itemId?: string;
}

export interface ToolCallPart {
  type: "tool-call";
  id: string;
  name: string;
  /** JSON text exactly as the model wrote it; "" means an empty object. For `custom` calls: the free-form input. */
  arguments: string;
  /** A call of a custom (free-form) tool. */
  custom?: boolean;
  /** Gemini's thoughtSignature, which must come back with the call. */
  signature?: string;
  /** The backend (or the gateway) runs the tool itself, e.g. web search; its result is a search-result part. */
  serverSide?: boolean;
  /** Responses: id of the item (not of the call). */
  itemId?: string;
  cache?: CacheHint;
}

export interface ToolResultPart {
  type: "tool-result";
  callId: string;
  /** The name of the tool, where the wire format says it. */
  name?: string;
  parts: (TextPart | ImagePart | DocumentPart)[];
  isError?: boolean;
  cache?: CacheHint;
}

/** The outcome of a server-side web search (Messages: web_search_tool_result; Responses: web_search_call). */
export interface SearchResultPart {
  type: "search-result";
  callId: string;
  results: SearchHit[];
  /** Messages' error codes: unavailable, max_uses_exceeded, too_many_requests, query_too_long, ... */
  errorCode?: string;
}

export interface SearchHit {
  url: string;
  title: string;
  /** Opaque text that the client sends back unchanged. */
  encryptedContent?: string;
  /** e.g. "April 30, 2026" */
  pageAge?: string | null;
  /** Text of the page for the model; never shown to clients. */
  snippet?: string;
}

interface RefusalPart {
  type: "refusal";
  text: string;
}

/** Something only its own protocol understands; kept towards that protocol, dropped and listed towards others. */
export interface OpaquePart {
  type: "opaque";
  protocol: ProtocolName;
  /** The block, item or part as it was written. */
  value: JsonObject;
}

export type ContentPart =
  | TextPart
  | ImagePart
  | DocumentPart
  | AudioPart
  | VideoPart
  | ReasoningPart
  | ToolCallPart
  | ToolResultPart
  | SearchResultPart
  | RefusalPart
  | OpaquePart;

export interface Message {
  /**
   * Tool results stand in messages of the role "user", in the order they were given. "system" is an instruction in the
   * middle of the conversation; leading ones are GenerationRequest.system.
   */
  role: "user" | "assistant" | "system";
  parts: ContentPart[];
  /** The name of the speaker, where the wire format has one. */
  name?: string;
}
