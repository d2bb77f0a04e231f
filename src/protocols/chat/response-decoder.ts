// A chat backend's whole answer -> the neutral answer.

import type { Citation, ContentPart, ImagePart, OpaquePart, ToolCallPart } from "../../generation/content.ts";
import type { GenerationResult } from "../../generation/result.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { isDataUrl } from "../../media/data-url.ts";
import { decodeUsage } from "../chunk-usage.ts";
import { AnswerFailed, DecodeError } from "../protocol.ts";
import { filled, nonEmptyText, numberOf, objectsOf, textOf } from "../reading.ts";
import { embeddedError } from "./errors.ts";
import { decodeFinish, isBroken, readFinishReason } from "./finish-reason.ts";
import { decodeAnnotations } from "./message-decoder.ts";
import { decodeReasoning } from "./reasoning-details.ts";
import { argumentText, decodeToolCall, missingCallId } from "./tools.ts";
import { readThoughtSignature } from "./wire.ts";

export function decodeResponse(body: JsonObject): GenerationResult {
  const failure = embeddedError(body);
  if (failure !== undefined) throw new AnswerFailed(failure);
  const choice = firstChoice(body);
  if (choice === undefined) throw new DecodeError("has no choices");
  const { message } = choice;
  if (!isObject(message)) throw new DecodeError("has a choice without a message");
  const reason = readFinishReason(choice);
  if (isBroken(reason)) throw new AnswerFailed(brokenOff(reason));
  const parts = decodeParts(message, decodeSources(body));
  const hasCalls = parts.some((part) => part.type === "tool-call");
  const finish = decodeFinish(reason, hasCalls, choice.stop_reason);
  return compact({ ...decodeHead(body), parts, finish, usage: decodeUsage(body.usage) });
}

/** The choice with index 0: more are never asked for. */
export function firstChoice({ choices }: JsonObject): JsonObject | undefined {
  if (!Array.isArray(choices)) return undefined;
  return choices.find((choice) => isObject(choice) && (typeof choice.index !== "number" || choice.index === 0));
}

export function decodeHead(body: JsonObject): { id: string; model: string; createdAt: number } {
  return {
    id: textOf(body.id),
    model: textOf(body.model),
    createdAt: Math.floor(numberOf(body.created) ?? 0),
  };
}

export function brokenOff(reason: string | undefined): { message: string; status: number; type: string } {
  return { message: `The backend broke off its answer (${reason}).`, status: 502, type: "backend_error" };
}

/** What a vendor that searches by itself names beside the choices: search_results (Perplexity), or addresses alone (xAI). */
export function decodeSources({ search_results, citations }: JsonObject): Citation[] {
  const results = objectsOf(search_results).flatMap(({ url, title }) =>
    typeof url === "string" ? [compact({ url, title: nonEmptyText(title) })] : [],
  );
  if (results.length > 0 || !Array.isArray(citations)) return results;
  return citations.flatMap((url: unknown) => (typeof url === "string" ? [{ url }] : []));
}

/** Pieces of an answer in the order in which a stream has them. */
function decodeParts(message: JsonObject, sources: readonly Citation[]): ContentPart[] {
  const { content } = message;
  const parts: ContentPart[] = [];
  parts.push(...decodeReasoning(message));
  const thought = Array.isArray(content) ? joinContent(content, "thinking") : "";
  if (thought !== "") parts.push({ type: "reasoning", text: thought });
  const text = typeof content === "string" ? content : joinContent(content, "text");
  const citations = filled(decodeAnnotations(message.annotations)) ?? filled([...sources]);
  if (text !== "") parts.push(compact({ type: "text", text, citations, signature: readThoughtSignature(message) }));
  const refusal = textOf(message.refusal) + joinContent(content, "refusal");
  if (refusal !== "") parts.push({ type: "refusal", text: refusal });
  parts.push(...decodeImages(message.images), ...decodeCalls(message), ...decodeOwn(message));
  return parts;
}

/** What only chat clients have a place for: files that a router has read, and tools that a vendor has run. */
export function decodeOwn({ annotations, executed_tools: tools }: JsonObject): OpaquePart[] {
  const files = objectsOf(annotations).filter(({ type }) => typeof type === "string" && type !== "url_citation");
  const value = compact({ annotations: filled(files), executed_tools: filled(objectsOf(tools)) });
  return Object.keys(value).length === 0 ? [] : [{ type: "opaque", protocol: "chat", value }];
}

type ContentKind = "text" | "thinking" | "refusal";

/** The pieces of a content that is a list: {type: "text", text}, {type: "thinking", thinking: text or list} (Mistral). */
export function* contentPieces(content: readonly unknown[]): Generator<{ kind: ContentKind; text: string }> {
  for (const part of content) {
    if (!isObject(part)) continue;
    if (part.type === "thinking") {
      const { thinking } = part;
      yield { kind: "thinking", text: typeof thinking === "string" ? thinking : joinContent(thinking, "text") };
    } else if (part.type === "refusal") yield { kind: "refusal", text: textOf(part.refusal) };
    else yield { kind: "text", text: textOf(part.text) };
  }
}

function joinContent(content: unknown, kind: ContentKind): string {
  if (!Array.isArray(content)) return "";
  let text = "";
  for (const piece of contentPieces(content)) if (piece.kind === kind) text += piece.text;
  return text;
}

/** Images that the model made (message.images, a form that several routers and servers share). */
export function decodeImages(images: unknown): ImagePart[] {
  if (!Array.isArray(images)) return [];
  return images.flatMap((image): ImagePart[] => {
    const url = isObject(image) && isObject(image.image_url) ? nonEmptyText(image.image_url.url) : undefined;
    if (url === undefined) return [];
    const comma = url.indexOf(",");
    if (!isDataUrl(url) || comma < 0) return [{ type: "image", source: { kind: "url", url } }];
    const mediaType = url.slice("data:".length, comma).split(";", 1)[0] || "image/png";
    return [{ type: "image", source: { kind: "base64", mediaType, data: url.slice(comma + 1) } }];
  });
}

function decodeCalls(message: JsonObject): ToolCallPart[] {
  const parts: ToolCallPart[] = [];
  for (const entry of objectsOf(message.tool_calls)) {
    const part = decodeToolCall(entry, missingCallId(parts.length));
    if (part === undefined) throw new DecodeError("has a tool call without a name");
    parts.push(part);
  }
  const legacy = message.function_call;
  if (parts.length === 0 && isObject(legacy) && nonEmptyText(legacy.name) !== undefined) {
    parts.push({
      type: "tool-call",
      id: missingCallId(0),
      name: String(legacy.name),
      arguments: argumentText(legacy.arguments),
    });
  }
  return parts;
}
