// The few shapes that the halves of the generateContent format share. Parts stay loose on purpose: new kinds of parts
// appear faster than types can follow.

import type { JsonObject } from "../../lib/json.ts";

/** A piece of a message: text, inlineData, functionCall, ... with thought and thoughtSignature beside it. */
export type GeminiPart = JsonObject;

export interface Content {
  role: "user" | "model";
  parts: GeminiPart[];
}

/** A count: never negative, undefined for anything that is none. Large ones may come as text. */
export function optionalCount(value: unknown): number | undefined {
  const count = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof count === "number" && Number.isFinite(count) ? Math.max(0, Math.trunc(count)) : undefined;
}
