// A chat backend's whole answer -> the neutral answer.

import type { ContentPart, ImagePart, TextPart, ToolCallPart } from "../../generation/content.ts";
import type { GenerationResult } from "../../generation/result.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { decodeUsage } from "../chunk-usage.ts";
import { AnswerFailed, DecodeError } from "../protocol.ts";
import { embeddedError } from "./errors.ts";
import { decodeFinish, isBroken, readFinishReason } from "./finish-reason.ts";
import { isDataUrl } from "./media.ts";
import { decodeAnnotations } from "./message-decoder.ts";
import { decodeReasoning } from "./reasoning-details.ts";
import { argumentText, decodeToolCall, missingCallId } from "./tools.ts";
import { finiteNumber, nonEmptyString, readThoughtSignature } from "./wire.ts";

export function decodeResponse(body: JsonObject): GenerationResult {
  const failure = embeddedError(body);
  if (failure !== undefined) throw new AnswerFailed(failure);
  const choice = firstChoice(body);
  if (choice === undefined) throw new DecodeError("has no choices");
  const { message } = choice;
  if (!isObject(message)) throw new DecodeError("has a choice without a message");
  const reason = readFinishReason(choice);
  if (isBroken(reason)) throw new AnswerFailed(brokenOff(reason));
  const parts = decodeParts(message);
  const hasCalls = parts.some((part) => part.type === "tool-call");
  const result: GenerationResult = {
    ...decodeHead(body),
    parts,
    finish: decodeFinish(reason, hasCalls, choice.stop_reason),
  };
  const usage = decodeUsage(body.usage);
  if (usage !== undefined) result.usage = usage;
  return result;
}

/** The choice with index 0: more are never asked for. */
export function firstChoice({ choices }: JsonObject): JsonObject | undefined {
  if (!Array.isArray(choices)) return undefined;
  return choices.find((choice) => isObject(choice) && (typeof choice.index !== "number" || choice.index === 0));
}

export function decodeHead(body: JsonObject): { id: string; model: string; createdAt: number } {
  return {
    id: nonEmptyString(body.id) ?? "",
    model: nonEmptyString(body.model) ?? "",
    createdAt: Math.floor(finiteNumber(body.created) ?? 0),
  };
}

export function brokenOff(reason: string | undefined): { message: string; status: number; type: string } {
  return { message: `The backend broke off its answer (${reason}).`, status: 502, type: "backend_error" };
}

/** Pieces of an answer in the order in which a stream has them. */
function decodeParts(message: JsonObject): ContentPart[] {
  const { content } = message;
  const parts: ContentPart[] = [];
  parts.push(...decodeReasoning(message));
  const thought = Array.isArray(content) ? joinContent(content, "thinking") : "";
  if (thought !== "") parts.push({ type: "reasoning", text: thought });
  const text = typeof content === "string" ? content : joinContent(content, "text");
  if (text !== "") parts.push(decodeText(text, message));
  const refusal = (nonEmptyString(message.refusal) ?? "") + joinContent(content, "refusal");
  if (refusal !== "") parts.push({ type: "refusal", text: refusal });
  parts.push(...decodeImages(message.images), ...decodeCalls(message));
  return parts;
}

function decodeText(text: string, message: JsonObject): TextPart {
  const part: TextPart = { type: "text", text };
  const citations = decodeAnnotations(message.annotations);
  if (citations.length > 0) part.citations = citations;
  const signature = readThoughtSignature(message);
  if (signature !== undefined) part.signature = signature;
  return part;
}

export type ContentKind = "text" | "thinking" | "refusal";

/** The pieces of a content that is a list: {type: "text", text}, {type: "thinking", thinking: text or list} (Mistral). */
export function* contentPieces(content: readonly unknown[]): Generator<{ kind: ContentKind; text: string }> {
  for (const part of content) {
    if (!isObject(part)) continue;
    if (part.type === "thinking") {
      const { thinking } = part;
      yield { kind: "thinking", text: typeof thinking === "string" ? thinking : joinContent(thinking, "text") };
    } else if (part.type === "refusal") yield { kind: "refusal", text: nonEmptyString(part.refusal) ?? "" };
    else yield { kind: "text", text: nonEmptyString(part.text) ?? "" };
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
    const url = isObject(image) && isObject(image.image_url) ? nonEmptyString(image.image_url.url) : undefined;
    if (url === undefined) return [];
    const comma = url.indexOf(",");
    if (!isDataUrl(url) || comma < 0) return [{ type: "image", source: { kind: "url", url } }];
    const mediaType = url.slice("data:".length, comma).split(";", 1)[0] || "image/png";
    return [{ type: "image", source: { kind: "base64", mediaType, data: url.slice(comma + 1) } }];
  });
}

function decodeCalls(message: JsonObject): ToolCallPart[] {
  const parts: ToolCallPart[] = [];
  const entries: unknown[] = Array.isArray(message.tool_calls) ? message.tool_calls : [];
  for (const entry of entries) {
    if (!isObject(entry)) continue;
    const part = decodeToolCall(entry, missingCallId(parts.length));
    if (part === undefined) throw new DecodeError("has a tool call without a name");
    parts.push(part);
  }
  const legacy = message.function_call;
  if (parts.length === 0 && isObject(legacy) && nonEmptyString(legacy.name) !== undefined) {
    parts.push({
      type: "tool-call",
      id: missingCallId(0),
      name: String(legacy.name),
      arguments: argumentText(legacy.arguments),
    });
  }
  return parts;
}
