// What routing needs to know of a request whose bytes are forwarded as they came.

import type { JsonObject } from "../lib/json.ts";

export interface RequestSummary {
  model: string;
  stream: boolean;
  /** How many choices a complete answer has (the field n). */
  choices: number;
  /** What tells this conversation from others; asked for only by strategies that keep it on one backend. */
  affinity(body: JsonObject): string | undefined;
}

/** The fields that clients set for this purpose: prompt_cache_key, else user. */
export function affinityOf(body: JsonObject): string | undefined {
  if (typeof body.prompt_cache_key === "string") return body.prompt_cache_key;
  return typeof body.user === "string" ? body.user : undefined;
}
