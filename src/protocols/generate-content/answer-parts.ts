// Parts of an answer as clients get them: what the whole answer and its stream write alike.

import type { ContentPart, MediaSource, ToolCallPart } from "../../generation/content.ts";
import type { PartStart } from "../../generation/events.ts";
import type { Seal } from "../seal-payload.ts";
import { inputOf } from "../tool-input.ts";
import { FOREIGN_MARK, wrapSeal } from "./foreign-signature.ts";
import type { GeminiPart } from "./wire.ts";

/** The signature of a thought: a Gemini model's own, or what brings a foreign proof back. */
export function signatureOfThought(seal: Seal): string | undefined {
  return seal.origin === "generate-content" ? seal.signature : wrapSeal(seal);
}

/** @param isFirst - of the answer: newer models want a signature on that one, and the mark says that there was none */
export function callPart(call: ToolCallPart, isFirst: boolean): GeminiPart {
  const functionCall = { ...(call.id !== "" && { id: call.id }), name: call.name, args: inputOf(call) };
  const thoughtSignature = call.signature ?? (isFirst ? FOREIGN_MARK : undefined);
  return thoughtSignature === undefined ? { functionCall } : { functionCall, thoughtSignature };
}

/** Parts that come whole; undefined for what has no place in an answer of this format. */
export function wholePart(part: ContentPart | PartStart): GeminiPart | undefined {
  if (part.type === "opaque") return part.protocol === "generate-content" ? part.value : undefined;
  return part.type === "image" || part.type === "audio" ? inlinePart(part.source) : undefined;
}

function inlinePart(source: MediaSource): GeminiPart | undefined {
  if (source.kind !== "base64") return undefined;
  return { inlineData: { mimeType: source.mediaType, data: source.data } };
}
