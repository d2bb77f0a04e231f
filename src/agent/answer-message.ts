// What of an answer is kept in the conversation, and how the turn goes on behind it.

import type { ContentPart, Message, ToolCallPart } from "../generation/content.ts";
import type { GenerationResult } from "../generation/result.ts";
import type { StopReason } from "./agent.ts";
import { parseArguments } from "./check-arguments.ts";

export interface Answered {
  /** Undefined: nothing was said that can be kept. */
  message: Message | undefined;
  /** As the model wrote them, in order; each of them needs a result. */
  calls: ToolCallPart[];
  /** The calls are no more than a beginning: none of them may be carried out. */
  isCut: boolean;
  /** Undefined: the model is to be asked again. */
  stop: StopReason | undefined;
}

/** @param distinct - gives calls ids that no other call of the conversation has */
export function readAnswer(
  { parts, finish }: Pick<GenerationResult, "parts" | "finish">,
  distinct: (parts: readonly ContentPart[]) => ContentPart[],
): Answered {
  const isRefused = finish.reason === "content-filter" || parts.some((part) => part.type === "refusal");
  const isCut = finish.reason === "length";
  // Calls of an answer that was refused are not what anybody wants.
  const kept = distinct(parts.filter((part) => !isEmpty(part) && !(isRefused && isOwnCall(part))));
  const calls = kept.filter(isOwnCall);
  const message = messageOf(kept.map((part) => (isOwnCall(part) ? withReadableArguments(part) : part)));
  return {
    message,
    calls,
    isCut,
    stop: stopOf(isRefused, isCut, calls.length > 0 || (message !== undefined && finish.reason === "pause")),
  };
}

function stopOf(isRefused: boolean, isCut: boolean, goesOn: boolean): StopReason | undefined {
  if (isRefused) return "refusal";
  if (isCut) return "max_tokens";
  return goesOn ? undefined : "end_turn";
}

/** Of an answer that broke off: the words, which the person has read. A thought or a call without its end is none. */
export function brokenAnswer(said: readonly ContentPart[]): Message | undefined {
  return messageOf(said.filter((part) => part.type === "text" && part.text.trim() !== ""));
}

/** Thoughts alone are no message: some services refuse to be sent them. */
function messageOf(parts: ContentPart[]): Message | undefined {
  return parts.every((part) => part.type === "reasoning") ? undefined : { role: "assistant", parts };
}

function isEmpty(part: ContentPart): boolean {
  if (part.type === "reasoning") return part.text === "" && part.sealed === undefined && part.signature === undefined;
  return (part.type === "text" || part.type === "refusal") && part.text === "" && !("signature" in part);
}

function isOwnCall(part: ContentPart): part is ToolCallPart {
  return part.type === "tool-call" && part.serverSide !== true;
}

/** Engines that read the arguments of earlier calls refuse a conversation in which they are no JSON. */
function withReadableArguments(call: ToolCallPart): ToolCallPart {
  return call.custom === true || parseArguments(call.arguments).ok ? call : { ...call, arguments: "{}" };
}
