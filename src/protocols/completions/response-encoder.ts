// The neutral answer -> a text completion. Only text has a place in it; thoughts are left out.

import type { Finish, GenerationResult } from "../../generation/result.ts";
import type { JsonObject } from "../../lib/json.ts";
import { encodeUsage } from "../chunk-usage.ts";
import type { AnswerContext } from "../protocol.ts";

export function encodeResponse(result: GenerationResult, context: AnswerContext): JsonObject {
  let text = "";
  for (const part of result.parts) if (part.type === "text" || part.type === "refusal") text += part.text;
  return {
    id: answerId(result.id, context),
    object: "text_completion",
    created: result.createdAt || context.createdAt,
    model: context.model,
    choices: [{ text, index: 0, logprobs: null, finish_reason: encodeFinishReason(result.finish) }],
    ...(result.usage === undefined ? {} : { usage: encodeUsage(result.usage) }),
  };
}

export function answerId(id: string, { nonce }: AnswerContext): string {
  return id === "" ? `cmpl-${nonce}` : id;
}

export function encodeFinishReason({ reason }: Finish): string {
  if (reason === "length") return "length";
  return reason === "content-filter" ? "content_filter" : "stop";
}
