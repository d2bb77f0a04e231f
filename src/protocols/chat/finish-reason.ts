// Why a model stopped, in the words of the chat format and of its imitators.

import type { Finish, FinishReason } from "../../generation/result.ts";
import type { JsonObject } from "../../lib/json.ts";
import { nonEmptyString } from "./wire.ts";

const ENCODED: Readonly<Record<FinishReason, string>> = {
  stop: "stop",
  "stop-sequence": "stop",
  length: "length",
  "tool-calls": "tool_calls",
  "content-filter": "content_filter",
  pause: "stop",
};

/** Words beyond OpenAI's own come from engines and routers; any other one counts as a stop. */
const DECODED: ReadonlyMap<string, FinishReason> = new Map([
  ["stop", "stop"],
  ["length", "length"],
  ["max_tokens", "length"],
  ["model_length", "length"],
  ["tool_calls", "tool-calls"],
  ["function_call", "tool-calls"],
  ["content_filter", "content-filter"],
  ["safety", "content-filter"],
]);

/** Words with which engines say that the answer was broken off. */
const BROKEN: ReadonlySet<string> = new Set(["error", "abort"]);

export function encodeFinishReason(finish: Finish, isLegacyCall: boolean): string {
  return finish.reason === "tool-calls" && isLegacyCall ? "function_call" : ENCODED[finish.reason];
}

/** The word of a choice; undefined while there is none ("" and null mean the same). */
export function readFinishReason(choice: JsonObject): string | undefined {
  return nonEmptyString(choice.finish_reason);
}

export function isBroken(word: string | undefined): boolean {
  return word !== undefined && BROKEN.has(word);
}

/**
 * @param word - undefined where a backend ended an answer properly without giving a reason
 * @param stopSequence - vLLM's stop_reason: the stop string that was met
 */
export function decodeFinish(word: string | undefined, hasCalls: boolean, stopSequence: unknown): Finish {
  const finish: Finish = { reason: DECODED.get(word ?? "stop") ?? "stop" };
  if (word !== undefined) finish.raw = { protocol: "chat", value: word };
  if (finish.reason === "stop" && hasCalls)
    finish.reason = "tool-calls"; // many engines say stop all the same
  else if (finish.reason === "tool-calls" && !hasCalls) finish.reason = "stop";
  const sequence = nonEmptyString(stopSequence);
  if (finish.reason === "stop" && sequence !== undefined) {
    finish.reason = "stop-sequence";
    finish.stopSequence = sequence;
  }
  return finish;
}
