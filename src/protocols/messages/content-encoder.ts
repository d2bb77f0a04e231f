// Neutral parts -> content blocks of a request. What the format cannot hold is refused or listed, by the rules of
// dropped.ts.

import type {
  Citation,
  ContentPart,
  DocumentPart,
  ImagePart,
  MediaSource,
  Message,
  OpaquePart,
  SearchResultPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
} from "../../generation/content.ts";
import type { DropList } from "../../generation/dropped.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import { isBlank } from "../reading.ts";
import { heldElsewhere, refusedPart, searchText } from "../request-words.ts";
import { inputOf } from "../tool-input.ts";
import { cacheControlMember } from "./cache-control.ts";
import { wrapSnippet } from "./foreign-seal.ts";
import { type Block, base64ToUtf8 } from "./wire.ts";

const IMAGE_TYPES: ReadonlySet<string> = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]);
const PDF = "application/pdf";
const SERVER_TOOL_ID = /^srvtoolu_[A-Za-z0-9_]+$/;

export interface EncodingContext {
  /** The client speaks this format, so ids of files are the backend's own. */
  isOwn: boolean;
  /** Server-side calls whose results no Messages backend made; they become text. */
  foreignCalls: ReadonlySet<string>;
  dropped: DropList;
}

/** The calls of server-side tools that a Messages backend would not recognise as its own. */
export function foreignServerCalls(messages: readonly Message[]): Set<string> {
  const foreign = new Set<string>();
  for (const { parts } of messages) {
    for (const part of parts) {
      if (part.type === "search-result" && !isNativeResult(part)) foreign.add(part.callId);
      if (part.type === "tool-call" && part.serverSide === true && !SERVER_TOOL_ID.test(part.id)) foreign.add(part.id);
    }
  }
  return foreign;
}

function isNativeResult({ callId, results }: SearchResultPart): boolean {
  return SERVER_TOOL_ID.test(callId) && results.every((hit) => hit.encryptedContent !== undefined);
}

export function encodeUserPart(part: ContentPart, context: EncodingContext): Block | undefined {
  switch (part.type) {
    case "text":
      return encodePlainText(part);
    case "refusal":
      return isBlank(part.text) ? undefined : { type: "text", text: part.text };
    case "image":
      return encodeImage(part, context);
    case "document":
      return encodeDocument(part, context);
    case "tool-result":
      return encodeToolResult(part, context);
    case "audio":
      throw refusedPart("input_audio", "audio is not supported by this model's backend.");
    case "video":
      throw refusedPart("video", "video is not supported by this model's backend.");
    case "opaque":
      return encodeOpaque(part, context.dropped);
    default:
      context.dropped.add(`${part.type} in a user message`);
      return undefined;
  }
}

export function encodeAssistantPart(part: ContentPart, context: EncodingContext): Block | undefined {
  switch (part.type) {
    case "text":
      return encodeAnswerText(part, context.dropped);
    case "refusal":
      return isBlank(part.text) ? undefined : { type: "text", text: part.text };
    case "reasoning":
      if (part.origin === "messages" && part.sealed !== undefined) {
        return { type: "redacted_thinking", data: part.sealed };
      }
      if (part.origin === "messages" && part.signature !== undefined) {
        return { type: "thinking", thinking: part.text, signature: part.signature };
      }
      context.dropped.add("reasoning", "its signature is not of this backend");
      return undefined;
    case "tool-call":
      return part.serverSide === true ? encodeServerCall(part, context) : encodeToolCall(part);
    case "search-result":
      return context.foreignCalls.has(part.callId)
        ? { type: "text", text: searchText(part) }
        : encodeSearchResult(part);
    case "opaque":
      return encodeOpaque(part, context.dropped);
    default:
      context.dropped.add(`${part.type} in an assistant message`);
      return undefined;
  }
}

export function encodePlainText({ text, cache }: TextPart): Block | undefined {
  return isBlank(text) ? undefined : { type: "text", text, ...cacheControlMember(cache) };
}

function encodeAnswerText(part: TextPart, dropped: DropList): Block | undefined {
  const block = encodePlainText(part);
  if (block === undefined || part.citations === undefined) return block;
  const citations = part.citations.map(ownCitation).filter((citation) => citation !== undefined);
  if (citations.length < part.citations.length) dropped.add("citations", "they are of another backend");
  return citations.length === 0 ? block : { ...block, citations };
}

function ownCitation({ origin }: Citation): JsonObject | undefined {
  return origin?.protocol === "messages" ? origin.value : undefined;
}

function encodeToolCall(part: ToolCallPart): Block {
  const name = part.name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 128) || "unknown";
  return { type: "tool_use", id: toolId(part.id), name, input: inputOf(part), ...cacheControlMember(part.cache) };
}

/** The same id for a call and its result, made of the letters that the format allows. */
function toolId(id: string): string {
  if (id !== "" && !/[^A-Za-z0-9_-]/.test(id)) return id;
  return `${id.replace(/[^A-Za-z0-9_-]/g, "_")}_${fnv1a(id).toString(16)}`;
}

/** Keeps ids apart that differ only in letters which are not allowed. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}

function encodeServerCall(part: ToolCallPart, { foreignCalls, dropped }: EncodingContext): Block | undefined {
  if (foreignCalls.has(part.id)) {
    dropped.add(`call of ${part.name}`, "another backend ran the tool; its result is told as text");
    return undefined;
  }
  return {
    type: "server_tool_use",
    id: part.id,
    name: part.name,
    input: inputOf(part),
    ...cacheControlMember(part.cache),
  };
}

export function encodeSearchResult({ callId: id, results, errorCode }: SearchResultPart): Block {
  const content =
    errorCode === undefined
      ? results.map((hit) => ({
          type: "web_search_result",
          url: hit.url,
          title: hit.title,
          encrypted_content: hit.encryptedContent ?? wrapSnippet(hit.snippet),
          page_age: hit.pageAge ?? null,
        }))
      : { type: "web_search_tool_result_error", error_code: errorCode };
  return { type: "web_search_tool_result", tool_use_id: id, content };
}

function encodeOpaque({ protocol, value }: OpaquePart, dropped: DropList): Block | undefined {
  const type = typeof value.type === "string" ? value.type : "part";
  if (protocol === "messages") return { ...value, type };
  dropped.add(type);
  return undefined;
}

function encodeToolResult(part: ToolResultPart, context: EncodingContext): Block {
  const content: Block[] = [];
  for (const inner of part.parts) {
    // A breakpoint belongs to the result as a whole.
    const { cache: _cache, ...bare } = inner;
    const block = encodeUserPart(bare, context);
    if (block !== undefined) content.push(block);
  }
  return {
    type: "tool_result",
    tool_use_id: toolId(part.callId),
    ...(content.length > 0 && { content }),
    ...(part.isError === true && { is_error: true }),
    ...cacheControlMember(part.cache),
  };
}

function encodeImage({ source, detail, cache }: ImagePart, context: EncodingContext): Block {
  if (detail !== undefined && detail !== "auto") context.dropped.add("image_url.detail");
  if (source.kind === "base64" && !IMAGE_TYPES.has(source.mediaType)) {
    throw refusedPart("image", `images of type ${source.mediaType} are not supported; use JPEG, PNG, GIF or WebP.`);
  }
  return { type: "image", source: encodeSource(source, context), ...cacheControlMember(cache) };
}

function encodeDocument(part: DocumentPart, context: EncodingContext): Block {
  const { title, context: about, citations, cache } = part;
  const source = documentSource(part.source, context);
  if (cache !== undefined) context.dropped.add("cache_control on documents");
  return {
    type: "document",
    source,
    ...compact({ title, context: about }),
    ...(citations !== undefined && { citations: { enabled: citations } }),
  };
}

function documentSource(source: MediaSource, context: EncodingContext): JsonObject {
  if (source.kind !== "base64" || source.mediaType === PDF) return encodeSource(source, context);
  if (!isTextType(source.mediaType)) {
    throw refusedPart("file", `files of type ${source.mediaType} are not supported; use PDF or plain text.`);
  }
  return { type: "text", media_type: "text/plain", data: base64ToUtf8(source.data) };
}

function isTextType(mediaType: string): boolean {
  return mediaType.startsWith("text/") || mediaType === "application/json";
}

function encodeSource(source: MediaSource, { isOwn }: EncodingContext): JsonObject {
  switch (source.kind) {
    case "base64":
      return { type: "base64", media_type: source.mediaType, data: source.data };
    case "url":
      return { type: "url", url: source.url };
    case "file":
      if (isOwn) return { type: "file", file_id: source.fileId };
      throw heldElsewhere();
  }
}
