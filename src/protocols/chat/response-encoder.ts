// The neutral answer -> a chat client's whole answer.

import type { Citation, ContentPart, ImagePart, ToolCallPart } from "../../generation/content.ts";
import type { GenerationResult } from "../../generation/result.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import { encodeUsage } from "../chunk-usage.ts";
import type { AnswerContext } from "../protocol.ts";
import { filled, objectsOf } from "../reading.ts";
import { encodeFinishReason } from "./finish-reason.ts";
import { dataUrl } from "./media.ts";
import { encodeReasoningDetail } from "./reasoning-details.ts";
import { usesFunctions } from "./tools.ts";
import { thoughtSignature } from "./wire.ts";

export function encodeResponse(result: GenerationResult, context: AnswerContext): JsonObject {
  const isLegacy = answersFunctions(context);
  return compact({
    id: answerId(result.id, context),
    object: "chat.completion",
    created: result.createdAt || context.createdAt,
    model: context.model,
    choices: [
      {
        index: 0,
        message: encodeMessage(result.parts, context, isLegacy),
        logprobs: null,
        finish_reason: encodeFinishReason(result.finish, isLegacy),
      },
    ],
    usage: result.usage === undefined ? undefined : encodeUsage(result.usage),
  });
}

export function answerId(id: string, { nonce }: AnswerContext): string {
  return id === "" ? `chatcmpl-${nonce}` : id;
}

/** Whether the client asked with the deprecated functions and expects a function_call. */
export function answersFunctions({ request }: AnswerContext): boolean {
  return request.origin.protocol === "chat" && usesFunctions(request.origin.body);
}

/** Whether the client wants to read the thoughts. */
export function showsReasoning({ request }: AnswerContext): boolean {
  return request.reasoning.visible !== false;
}

/** Results of searches and parts of other formats have no place here. */
function encodeMessage(parts: readonly ContentPart[], context: AnswerContext, isLegacy: boolean): JsonObject {
  let text = "";
  let refusal = "";
  let signature: string | undefined;
  const annotations: JsonObject[] = [];
  const images: JsonObject[] = [];
  const calls: ToolCallPart[] = [];
  const executed: JsonObject[] = [];
  for (const part of parts) {
    if (part.type === "text") {
      annotations.push(...encodeCitations(part.citations ?? [], text.length, part.text.length));
      text += part.text;
      signature = part.signature ?? signature;
    } else if (part.type === "refusal") refusal += part.text;
    else if (part.type === "image") images.push(...encodeImage(part));
    else if (part.type === "tool-call" && part.serverSide !== true) calls.push(part);
    else if (part.type === "opaque" && part.protocol === "chat") {
      annotations.push(...objectsOf(part.value.annotations));
      executed.push(...objectsOf(part.value.executed_tools));
    }
  }
  const saysMore = calls.length > 0 || refusal !== "";
  return compact({
    role: "assistant",
    content: text === "" && saysMore ? null : text,
    refusal: refusal === "" ? null : refusal,
    ...encodeReasoning(parts, context),
    annotations: filled(annotations),
    images: filled(images),
    executed_tools: filled(executed),
    extra_content: signature === undefined ? undefined : thoughtSignature(signature),
    ...encodeCalls(calls, isLegacy),
  });
}

function encodeReasoning(parts: readonly ContentPart[], context: AnswerContext): JsonObject {
  if (!showsReasoning(context)) return {};
  const thoughts = parts.filter((part) => part.type === "reasoning");
  const text = thoughts.map((part) => part.text).join("");
  const details = thoughts.flatMap((part) => encodeReasoningDetail(part) ?? []);
  return {
    reasoning_content: text === "" ? undefined : text,
    reasoning_details: filled(details),
  };
}

/**
 * Annotations count in the whole content, citations in their part. A citation without a place stands for its whole part;
 * one without an address cannot be said.
 */
export function encodeCitations(citations: readonly Citation[], offset: number, length: number): JsonObject[] {
  return citations.flatMap(({ url, title, startIndex = 0, endIndex = length }) =>
    url === undefined
      ? []
      : [
          {
            type: "url_citation",
            url_citation: { start_index: offset + startIndex, end_index: offset + endIndex, title: title ?? url, url },
          },
        ],
  );
}

/** An image as message.images holds it; one that only a file id names has no form here. */
export function encodeImage({ source }: ImagePart): JsonObject[] {
  if (source.kind === "file") return [];
  return [{ type: "image_url", image_url: { url: source.kind === "url" ? source.url : dataUrl(source) } }];
}

function encodeCalls(calls: readonly ToolCallPart[], isLegacy: boolean): JsonObject {
  const [first] = calls;
  if (first === undefined) return {};
  if (isLegacy) return { function_call: { name: first.name, arguments: first.arguments || "{}" } };
  return { tool_calls: calls.map(encodeCall) };
}

function encodeCall(call: ToolCallPart): JsonObject {
  const { id, name, custom, signature } = call;
  return compact({
    id,
    type: custom === true ? "custom" : "function",
    ...(custom === true
      ? { custom: { name, input: call.arguments } }
      : { function: { name, arguments: call.arguments || "{}" } }),
    extra_content: signature === undefined ? undefined : thoughtSignature(signature),
  });
}
