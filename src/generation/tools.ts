// Tools a model may call, and which of them it should.

import type { JsonObject } from "../lib/json.ts";
import type { CacheHint, ProtocolName } from "./content.ts";

export interface FunctionTool {
  kind: "function";
  name: string;
  description?: string;
  /** JSON Schema of the arguments; undefined: no arguments. */
  parameters?: JsonObject;
  /** As the client said it; undefined: not said. */
  strict?: boolean;
  cache?: CacheHint;
}

/** A tool with free-form text as its input (chat and Responses: type "custom"). */
export interface CustomTool {
  kind: "custom";
  name: string;
  description?: string;
  /** As written: {type: "text"} or a grammar. */
  format?: JsonObject;
}

/** The name of a search of the web, in every format that has one. */
export const WEB_SEARCH = "web_search";

export interface WebSearchTool {
  kind: "web-search";
  /** Name under which the model knows it: WEB_SEARCH. */
  name: string;
  maxUses?: number;
  allowedDomains?: string[];
  blockedDomains?: string[];
  /** {city, region, country, timezone}, all optional. */
  userLocation?: JsonObject;
  /** The definition as its own protocol wrote it. */
  origin: { protocol: ProtocolName; value: JsonObject };
  /** The client offers it to every model and can do without: where there is none it is dropped and listed. */
  optional?: true;
  cache?: CacheHint;
}

/** Any other tool that the vendor runs; only for the protocol that defined it, elsewhere a 400 that names it. */
export interface HostedTool {
  kind: "hosted";
  /** The type as written, e.g. "code_interpreter" or "computer_20250124". */
  name: string;
  origin: { protocol: ProtocolName; value: JsonObject };
  /** As for a web search. */
  optional?: true;
}

export type Tool = FunctionTool | CustomTool | WebSearchTool | HostedTool;

export type ToolChoice =
  | { type: "auto" }
  | { type: "none" }
  | { type: "required" }
  | { type: "tool"; name: string }
  /** Only the named tools may be called. */
  | { type: "allowed"; mode: "auto" | "required"; names: string[] };
