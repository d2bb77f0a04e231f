// How many tokens a message is to a model, roughly: counted from its bytes, because each model counts in its own way.

import type { ContentPart, MediaSource, Message } from "../../generation/content.ts";

const BYTES_PER_TOKEN = 4;
/** Tokens for the frame of one message. */
const MESSAGE_TOKENS = 4;
const IMAGE_TOKENS = 1_600;
const AUDIO_TOKENS = 2_000;
const VIDEO_TOKENS = 10_000;
/** A page of a PDF is 1,500 to 3,000 tokens and often some 50 KB of base64. */
const DOCUMENT_BYTES_PER_TOKEN = 24;
/** A document that is named by its address. */
const DOCUMENT_TOKENS = 3_000;

export function tokensOfText(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}

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
      return IMAGE_TOKENS;
    case "audio":
      return AUDIO_TOKENS;
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
  if (source.kind !== "base64") return DOCUMENT_TOKENS;
  const { length } = source.data;
  const isText = source.mediaType.startsWith("text/") || source.mediaType === "application/json";
  return Math.ceil(isText ? (length * 0.75) / BYTES_PER_TOKEN : length / DOCUMENT_BYTES_PER_TOKEN);
}
