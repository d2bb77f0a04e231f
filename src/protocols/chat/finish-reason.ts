// Why a model stopped, in the words of the chat format and of its imitators.

import type { Finish, FinishReason } from "../../generation/result.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import { nonEmptyText } from "../reading.ts";

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
  return nonEmptyText(choice.finish_reason);
}

export function isBroken(word: string | undefined): boolean {
  return word !== undefined && BROKEN.has(word);
}

/**
 * @param word - undefined where a backend ended an answer properly without giving a reason
 * @param stopSequence - vLLM's stop_reason: the stop string that was met
 */
export function decodeFinish(word: string | undefined, hasCalls: boolean, stopSequence: unknown): Finish {
  const said = DECODED.get(word ?? "stop") ?? "stop";
  const isStop = said === "stop" || said === "tool-calls";
  // Many engines say stop though there are calls, and some the other way round.
  const reason = isStop ? (hasCalls ? "tool-calls" : "stop") : said;
  const sequence = reason === "stop" ? nonEmptyText(stopSequence) : undefined;
  return compact({
    reason: sequence === undefined ? reason : "stop-sequence",
    raw: word === undefined ? undefined : { protocol: "chat", value: word },
    stopSequence: sequence,
  });
}
