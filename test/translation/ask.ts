// What a client of the matrix asks for, and what it reads of the answer, in words of no format. Independent of src on
// purpose: it is what the codecs are measured by.

export type JsonObject = Record<string, unknown>;

export type AskPart =
  | { type: "text"; text: string }
  /** Base64 of a PNG, or an address. */
  | { type: "image"; data?: string; url?: string }
  | { type: "document"; data: string; name: string }
  | { type: "audio"; data: string }
  | { type: "call"; id: string; name: string; arguments: JsonObject }
  | { type: "result"; id: string; text: string; isError?: boolean; image?: string };

export interface AskTurn {
  role: "user" | "assistant" | "system";
  parts: readonly AskPart[];
}

export interface AskTool {
  name: string;
  description: string;
  schema: JsonObject;
}

export interface Ask {
  system?: string;
  turns: readonly AskTurn[];
  tools?: readonly AskTool[];
  toolChoice?: "auto" | "none" | "required" | { name: string };
  parallelCalls?: false;
  maxTokens?: number;
  temperature?: number;
  topP?: number;
  stop?: readonly string[];
  /** The answer has to match this schema. */
  schema?: JsonObject;
  json?: true;
  effort?: string;
  /** The client wants to read the thoughts. */
  thoughts?: true;
  /** Marks the system text, the first tool and the last turn for the prompt cache. */
  cache?: true;
  /** Of a stream: tell the token counts at its end, where the format asks for that. */
  usage?: boolean;
  /** Members as the client's own format spells them. */
  more?: JsonObject;
}

export type ReadPart =
  | { type: "text"; text: string; citations: readonly string[] }
  | { type: "thinking"; text: string }
  | { type: "refusal"; text: string }
  | { type: "call"; id: string; name: string; arguments: string; custom?: boolean }
  | { type: "search"; query: string };

export interface ReadUsage {
  input: number;
  cacheRead: number;
  cacheWrite: number;
  output: number;
  reasoning: number;
}

export interface ReadError {
  type: string;
  message: string;
  code?: unknown;
  param?: unknown;
}

/** How an answer ended: whole, with the error event of the format, or with neither. */
export type ReadEnd = "whole" | "error" | "cut";

export interface Reading {
  status: number;
  id: string;
  parts: ReadPart[];
  /** As the format says it; details behind a colon. */
  finish: string;
  usage?: ReadUsage;
  model: string;
  end: ReadEnd;
  error?: ReadError;
  retryAfter?: string;
  /** The answer as the client would send it back in the next turn. */
  replay: JsonObject[];
  /** Offences against the rules of the format. */
  offences: string[];
}

export interface ToolOutcome {
  text: string;
  isError?: boolean;
  image?: string;
}

export type ClientName = "chat" | "responses" | "messages" | "completions" | "ollama-api" | "generate-content";

export interface WireClient {
  name: ClientName;
  /** Where it asks; a function where the model stands in the path, and not in the body. */
  path: string | ((model: string, stream: boolean) => string);
  headers: Record<string, string>;
  /** Of streams that are no Server-Sent Events: a JSON value in each line. */
  streamType?: string;
  /** The names that finish reasons have in this format. */
  finishes: Record<Finish, string>;
  write(ask: Ask, model: string, stream: boolean): JsonObject;
  /** The next turn: the answer goes back with the outcomes of its calls, or with a new question. */
  follow(body: JsonObject, reading: Reading, outcomes: readonly ToolOutcome[], question?: string): JsonObject;
  readWhole(body: JsonObject): Reading;
  readStream(events: readonly WireEvent[]): Reading;
  readError(body: JsonObject): ReadError;
}

export type Finish = "stop" | "stop-sequence" | "length" | "tool-calls" | "content-filter";

export interface WireEvent {
  name: string | undefined;
  data: string;
}

export function emptyReading(): Reading {
  return { status: 200, id: "", parts: [], finish: "", model: "", end: "cut", replay: [], offences: [] };
}

/** Arguments as their value says it, so that spaces do not count. */
export function canonical(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text === "" ? "{}" : text));
  } catch {
    return text;
  }
}

export function objects(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter((entry) => typeof entry === "object" && entry !== null) : [];
}

export function object(value: unknown): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function count(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
