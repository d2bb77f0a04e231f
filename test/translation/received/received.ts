// What a backend was asked, read from the body it received, in words of no format.

import type { JsonObject } from "../ask.ts";

export type SeenPart =
  | { type: "text"; text: string }
  | { type: "image"; source: string }
  | { type: "document"; name: string }
  | { type: "audio" }
  | { type: "call"; id: string; name: string; arguments: string; proof?: string }
  | { type: "result"; id: string; text: string; images: number; isError: boolean }
  | { type: "thinking"; text: string; proof: string };

export interface SeenTurn {
  role: string;
  parts: SeenPart[];
}

export interface Received {
  system: string[];
  turns: SeenTurn[];
  tools: { name: string; description: string; schema: JsonObject }[];
  /** Tools that the vendor runs. */
  hosted: string[];
  /** auto, none, required, or "tool NAME". */
  choice?: string;
  oneCall: boolean;
  maxTokens?: number;
  temperature?: number;
  topP?: number;
  stop: string[];
  /** How hard to think, in the format's own words. */
  effort?: string;
  /** Whether the thoughts are to be shown; undefined where the format does not say. */
  showsThoughts?: boolean;
  /** "json", or the schema. */
  format?: "json" | JsonObject;
  cacheHints: number;
  stream: boolean;
  /** Everything as it came. */
  body: JsonObject;
}

export const emptyReceived = (body: JsonObject): Received => ({
  system: [],
  turns: [],
  tools: [],
  hosted: [],
  oneCall: false,
  stop: [],
  cacheHints: JSON.stringify(body).split('"cache_control"').length - 1,
  stream: body.stream === true,
  body,
});

/** Media in short: "image/png, 70 bytes" would do; the data itself proves more. */
export function mediaOf(url: string): string {
  return /^data:[^,]*;base64,(.*)$/s.exec(url)?.[1] ?? url;
}
