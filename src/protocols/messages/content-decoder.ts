// Content blocks -> neutral parts, for both directions. Never throws: a block of an unknown type or form is kept as it
// was written, for Messages backends only.

import type {
  Citation,
  ContentPart,
  DocumentPart,
  ImagePart,
  MediaSource,
  OpaquePart,
  ReasoningPart,
  SearchHit,
  SearchResultPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
} from "../../generation/content.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { cacheMember } from "./cache-control.ts";
import { isForeignMark, unwrapSeal, unwrapSnippet } from "./foreign-seal.ts";
import { arrayOf, type Block, isBlock, optionalText, textOf, utf8ToBase64 } from "./wire.ts";

/** A string or a list of blocks; a document whose content is given in blocks becomes several parts. */
export function decodeContent(content: unknown): ContentPart[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return arrayOf(content).filter(isBlock).flatMap(decodeBlock);
}

export function decodeBlock(block: Block): ContentPart[] {
  switch (block.type) {
    case "text":
      return [decodeText(block)];
    case "thinking":
      return [decodeThinking(block)];
    case "redacted_thinking":
      return [{ type: "reasoning", text: "", sealed: textOf(block.data), origin: "messages" }];
    case "tool_use":
    case "server_tool_use":
      return [decodeToolUse(block)];
    case "web_search_tool_result":
      return [decodeSearchResult(block)];
    case "tool_result":
      return [decodeToolResult(block)];
    case "image":
      return [decodeImage(block) ?? opaque(block)];
    case "document":
      return decodeDocument(block);
    case "search_result":
      return [decodeSearchText(block)];
    default:
      return [opaque(block)];
  }
}

/** Blocks that answers consist of; whatever else stands in one is kept as it was written. */
const ANSWER_BLOCKS: ReadonlySet<string> = new Set([
  "text",
  "thinking",
  "redacted_thinking",
  "tool_use",
  "server_tool_use",
  "web_search_tool_result",
]);

export type AnswerPart = TextPart | ReasoningPart | ToolCallPart | SearchResultPart | OpaquePart;

export function decodeAnswerBlock(block: Block): AnswerPart {
  const [part] = ANSWER_BLOCKS.has(block.type) ? decodeBlock(block) : [];
  switch (part?.type) {
    case "text":
    case "reasoning":
    case "tool-call":
    case "search-result":
      return part;
    default:
      return opaque(block);
  }
}

function opaque(value: JsonObject): OpaquePart {
  return { type: "opaque", protocol: "messages", value };
}

export function decodeText(block: JsonObject): TextPart {
  const part: TextPart = { type: "text", text: textOf(block.text), ...cacheMember(block.cache_control) };
  const citations = decodeCitations(block.citations);
  if (citations.length > 0) part.citations = citations;
  return part;
}

export function decodeCitations(value: unknown): Citation[] {
  return arrayOf(value).filter(isObject).map(decodeCitation);
}

export function decodeCitation(value: JsonObject): Citation {
  const citation: Citation = {};
  const url = optionalText(value.url) ?? urlIn(value.source);
  const title = optionalText(value.title) ?? optionalText(value.document_title);
  const citedText = optionalText(value.cited_text);
  if (url !== undefined) citation.url = url;
  if (title !== undefined) citation.title = title;
  if (citedText !== undefined) citation.citedText = citedText;
  // A citation that the gateway wrote must not pass for one of a Messages backend.
  if (!isForeignMark(value.encrypted_index)) citation.origin = { protocol: "messages", value };
  return citation;
}

/** The source of a search result is free text, often an address. */
function urlIn(source: unknown): string | undefined {
  return typeof source === "string" && /^https?:\/\//.test(source) ? source : undefined;
}

function decodeThinking(block: JsonObject): ReasoningPart {
  return { type: "reasoning", text: textOf(block.thinking), ...sealOf(block.signature) };
}

/** What a signature proves: a Messages backend's own, or what the gateway wrapped for another. */
export function sealOf(signature: unknown): Omit<ReasoningPart, "type" | "text"> {
  if (isForeignMark(signature)) return unwrapSeal(signature);
  return typeof signature === "string" && signature !== "" ? { signature, origin: "messages" } : {};
}

function decodeToolUse(block: Block): ToolCallPart {
  const part: ToolCallPart = {
    type: "tool-call",
    id: textOf(block.id),
    name: textOf(block.name),
    arguments: argumentsOf(block.input),
    ...cacheMember(block.cache_control),
  };
  if (block.type === "server_tool_use") part.serverSide = true;
  return part;
}

/** JSON text of a tool's input, "{}" when there is none. */
export function argumentsOf(input: unknown): string {
  return JSON.stringify(input ?? {});
}

export function decodeSearchResult(block: JsonObject): SearchResultPart {
  const part: SearchResultPart = {
    type: "search-result",
    callId: textOf(block.tool_use_id),
    results: arrayOf(block.content).filter(isObject).map(decodeHit),
  };
  if (isObject(block.content)) part.errorCode = optionalText(block.content.error_code) ?? "unavailable";
  return part;
}

function decodeHit(result: JsonObject): SearchHit {
  const hit: SearchHit = { url: textOf(result.url), title: textOf(result.title) };
  const { encrypted_content: content, page_age: pageAge } = result;
  if (isForeignMark(content)) {
    const snippet = unwrapSnippet(content);
    if (snippet !== undefined) hit.snippet = snippet;
  } else if (typeof content === "string" && content !== "") {
    hit.encryptedContent = content;
  }
  if (typeof pageAge === "string" || pageAge === null) hit.pageAge = pageAge;
  return hit;
}

function decodeToolResult(block: JsonObject): ToolResultPart {
  const part: ToolResultPart = {
    type: "tool-result",
    callId: textOf(block.tool_use_id),
    parts: decodeResultContent(block.content),
    ...cacheMember(block.cache_control),
  };
  if (typeof block.is_error === "boolean") part.isError = block.is_error;
  return part;
}

function decodeResultContent(content: unknown): ToolResultPart["parts"] {
  return decodeContent(content).map((part) => {
    if (part.type === "text" || part.type === "image" || part.type === "document") return part;
    // The neutral model has nothing else inside a result; the model can still read it as text.
    return { type: "text", text: JSON.stringify(part.type === "opaque" ? part.value : part) };
  });
}

function decodeImage(block: JsonObject): ImagePart | undefined {
  const source = decodeSource(block.source);
  return source === undefined ? undefined : { type: "image", source, ...cacheMember(block.cache_control) };
}

function decodeDocument(block: Block): ContentPart[] {
  const { source } = block;
  if (!isObject(source)) return [opaque(block)];
  if (source.type !== "content") {
    const media = decodeSource(source);
    return [media === undefined ? opaque(block) : documentOf(block, media)];
  }
  const parts = decodeContent(source.content);
  const text = parts.map((part) => (part.type === "text" ? part.text : "")).join("\n\n");
  const media: MediaSource = { kind: "base64", mediaType: "text/plain", data: utf8ToBase64(text.trim()) };
  return [documentOf(block, media), ...parts.filter((part) => part.type === "image")];
}

function documentOf(block: JsonObject, source: MediaSource): DocumentPart {
  const part: DocumentPart = { type: "document", source, ...cacheMember(block.cache_control) };
  if (typeof block.title === "string") part.title = block.title;
  if (typeof block.context === "string") part.context = block.context;
  if (isObject(block.citations) && typeof block.citations.enabled === "boolean") {
    part.citations = block.citations.enabled;
  }
  return part;
}

function decodeSource(source: unknown): MediaSource | undefined {
  if (!isObject(source)) return undefined;
  const { type, data, url, media_type: mediaType, file_id: fileId } = source;
  if (type === "base64" && typeof data === "string") {
    return { kind: "base64", mediaType: optionalText(mediaType) ?? "application/octet-stream", data };
  }
  if (type === "text" && typeof data === "string") {
    return { kind: "base64", mediaType: "text/plain", data: utf8ToBase64(data) };
  }
  if (type === "url" && typeof url === "string") return { kind: "url", url };
  if (type === "file" && typeof fileId === "string") return { kind: "file", fileId };
  return undefined;
}

/** A search result that the client brings along: to other models it is text with its source. */
function decodeSearchText(block: JsonObject): TextPart {
  const texts = decodeContent(block.content).map((part) => (part.type === "text" ? part.text : ""));
  const lines = [textOf(block.title), textOf(block.source), "", ...texts];
  return { type: "text", text: lines.join("\n").trim(), ...cacheMember(block.cache_control) };
}
