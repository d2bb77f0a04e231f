// How many tokens a message is to a model, roughly: counted from its bytes, because each model counts in its own way.

import type { ContentPart, MediaSource, Message } from "../../generation/content.ts";
import {
  bytesOfBase64,
  DOCUMENT_TOKENS,
  IMAGE_TOKENS,
  SOUND_TOKENS,
  tokensOfText,
  USUAL_BYTES_PER_TOKEN,
  VIDEO_TOKENS,
} from "../../generation/token-facts.ts";

/** Tokens for the frame of one message. */
const MESSAGE_TOKENS = 4;

export function tokensOfMessage({ parts }: Message): number {
  return parts.reduce((sum, part) => sum + tokensOfPart(part), MESSAGE_TOKENS);
}

function tokensOfPart(part: ContentPart): number {
  switch (part.type) {
    case "text":
    case "refusal":
      return tokensOfText(part.text);
    case "reasoning":
      return tokensOfText(part.text) + tokensOfText(part.sealed ?? "");
    case "image":
      return IMAGE_TOKENS.usual;
    case "audio":
      return SOUND_TOKENS.usual;
    case "video":
      return VIDEO_TOKENS;
    case "document":
      return tokensOfDocument(part.source);
    case "tool-call":
      return tokensOfText(part.name) + tokensOfText(part.arguments) + MESSAGE_TOKENS;
    case "tool-result":
      return part.parts.reduce((sum, each) => sum + tokensOfPart(each), MESSAGE_TOKENS);
    case "search-result":
      return tokensOfText(JSON.stringify(part.results));
    case "opaque":
      return tokensOfText(JSON.stringify(part.value));
  }
}

function tokensOfDocument(source: MediaSource): number {
  if (source.kind !== "base64") return DOCUMENT_TOKENS.least;
  const bytes = bytesOfBase64(source.data.length);
  const isText = source.mediaType.startsWith("text/") || source.mediaType === "application/json";
  return Math.ceil(bytes / (isText ? USUAL_BYTES_PER_TOKEN : DOCUMENT_TOKENS.usualBytes));
}
