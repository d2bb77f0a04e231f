// What routing needs to know of a request whose bytes are forwarded as they came.

import { isObject, type JsonObject } from "../lib/json.ts";

export interface RequestSummary {
  model: string;
  stream: boolean;
  /** How many choices a complete answer has (the field n). */
  choices: number;
  /** What the answer is besides a JSON object or its events; see AnswerShape (upstream/read-answer.ts). */
  answers?: "text" | "bytes" | undefined;
  /** What tells this conversation from others; asked for only by strategies that keep it on one backend. */
  affinity(body: JsonObject): string | undefined;
}

/** How much of a turn tells it from others. */
export const MAX_TURN_LENGTH = 4096;

/**
 * The turns up to the first of the user: they stay the same as a conversation grows, and engines cache just this prefix.
 * Undefined for a conversation without a user.
 */
export function conversationStart(turns: readonly unknown[], instructions: readonly string[] = []): string | undefined {
  const first = turns.findIndex((turn) => isObject(turn) && turn.role === "user");
  if (first < 0) return undefined;
  const shown = turns.slice(0, first + 1).map((turn) => JSON.stringify(turn));
  return [...instructions, ...shown].map((text) => text.slice(0, MAX_TURN_LENGTH)).join("\n");
}

const MAX_USER_LENGTH = 256;

/**
 * The end user that a request names: `safety_identifier` or `user` (OpenAI), else `metadata.user_id` (Messages API).
 * Undefined for a body of another form.
 */
export function endUserOf(body: unknown): string | undefined {
  if (!isObject(body)) return undefined;
  const { safety_identifier, user, metadata } = body;
  const named = [safety_identifier, user, isObject(metadata) ? metadata.user_id : undefined];
  const found = named.find((name) => typeof name === "string" && name !== "") as string | undefined;
  return found?.slice(0, MAX_USER_LENGTH);
}

/** The fields that clients set for this purpose: prompt_cache_key, else user. */
export function affinityOf(body: JsonObject): string | undefined {
  if (typeof body.prompt_cache_key === "string") return body.prompt_cache_key;
  return typeof body.user === "string" ? body.user : undefined;
}
