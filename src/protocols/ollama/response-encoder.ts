// The neutral answer -> the whole answer of an Ollama client, and what its streams tell at their end.

import type { ToolCallPart } from "../../generation/content.ts";
import type { Finish, GenerationResult } from "../../generation/result.ts";
import type { Usage } from "../../generation/usage.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import type { AnswerContext } from "../protocol.ts";
import { filled } from "../reading.ts";
import { inputOf } from "../tool-input.ts";
import { formOf } from "./form.ts";

export function encodeResponse({ parts, finish, usage }: GenerationResult, context: AnswerContext): JsonObject {
  let content = "";
  let thinking = "";
  const calls: JsonObject[] = [];
  for (const part of parts) {
    if (part.type === "text" || part.type === "refusal") content += part.text;
    else if (part.type === "reasoning" && showsThoughts(context)) thinking += part.text;
    else if (part.type === "tool-call" && part.serverSide !== true) calls.push(encodeCall(part, calls.length));
  }
  const thought = thinking === "" ? undefined : thinking;
  const isChat = formOf(context.request.origin.body) === "chat";
  const said = isChat
    ? { message: compact({ role: "assistant", content, thinking: thought, tool_calls: filled(calls) }) }
    : compact({ response: content, thinking: thought });
  return {
    model: context.model,
    created_at: createdAt(context),
    ...said,
    done: true,
    ...encodeEnd(finish, usage, { totalMs: context.elapsedMs?.() }),
  };
}

export function showsThoughts({ request }: AnswerContext): boolean {
  return request.reasoning.visible !== false;
}

export function createdAt({ now, createdAt: begun }: AnswerContext): string {
  return new Date((now?.() ?? begun) * 1000).toISOString();
}

function encodeCall(call: ToolCallPart, index: number): JsonObject {
  return { id: call.id, function: { index, name: call.name, arguments: inputOf(call) } };
}

/** Since the gateway got the request; undefined: not measured. */
interface AnswerTimes {
  /** Until the first piece of the answer. */
  firstMs?: number | undefined;
  totalMs: number | undefined;
}

/** The members behind `done`. What no engine has told and the gateway has not measured is left out. */
export function encodeEnd(finish: Finish, usage: Usage | undefined, { firstMs, totalMs }: AnswerTimes): JsonObject {
  const total = nanoseconds(totalMs);
  const first = total === undefined ? undefined : nanoseconds(firstMs);
  return compact({
    done_reason: encodeFinishReason(finish),
    total_duration: total,
    prompt_eval_count: usage?.input.total,
    prompt_eval_duration: first,
    eval_count: usage?.output.total,
    // Left out where it is nothing, because clients divide by it.
    eval_duration: total === undefined || first === undefined || total === first ? undefined : total - first,
  });
}

/** Calls of tools end with "stop", too. */
function encodeFinishReason({ reason }: Finish): string {
  if (reason === "length") return "length";
  return reason === "content-filter" ? "content_filter" : "stop";
}

function nanoseconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 1e6);
}
