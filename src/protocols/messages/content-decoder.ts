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
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { arrayOf, nonEmptyText, objectOf, objectsOf, optionalBoolean, optionalText, textOf } from "../reading.ts";
import { cacheMember } from "./cache-control.ts";
import { isForeignMark, unwrapSeal, unwrapSnippet } from "./foreign-seal.ts";
import { type Block, isBlock, utf8ToBase64 } from "./wire.ts";

/** A string or a list of blocks; a document whose content is given in blocks becomes several parts. */
export function decodeContent(content: unknown): ContentPart[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return arrayOf(content).filter(isBlock).flatMap(decodeBlock);
}

function decodeBlock(block: Block): ContentPart[] {
  switch (block.type) {
    case "tool_result":
      return [decodeToolResult(block)];
    case "image":
      return [decodeImage(block) ?? opaque(block)];
    case "document":
      return decodeDocument(block);
    case "search_result":
      return [decodeSearchText(block)];
    default:
      return [decodeAnswerBlock(block)];
  }
}

/** Blocks that answers consist of; whatever else stands in one is kept as it was written. */
export function decodeAnswerBlock(
  block: Block,
): TextPart | ReasoningPart | ToolCallPart | SearchResultPart | OpaquePart {
  switch (block.type) {
    case "text":
      return decodeText(block);
    case "thinking":
      return { type: "reasoning", text: textOf(block.thinking), ...sealOf(block.signature) };
    case "redacted_thinking":
      return { type: "reasoning", text: "", sealed: textOf(block.data), origin: "messages" };
    case "tool_use":
    case "server_tool_use":
      return decodeToolUse(block);
    case "web_search_tool_result":
      return decodeSearchResult(block);
    default:
      return opaque(block);
  }
}

function opaque(value: JsonObject): OpaquePart {
  return { type: "opaque", protocol: "messages", value };
}

function decodeText(block: JsonObject): TextPart {
  const citations = decodeCitations(block.citations);
  return {
    type: "text",
    text: textOf(block.text),
    ...cacheMember(block.cache_control),
    ...(citations.length > 0 && { citations }),
  };
}

export function decodeCitations(value: unknown): Citation[] {
  return objectsOf(value).map(decodeCitation);
}

export function decodeCitation(value: JsonObject): Citation {
  return compact({
    url: optionalText(value.url) ?? urlIn(value.source),
    title: optionalText(value.title) ?? optionalText(value.document_title),
    citedText: optionalText(value.cited_text),
    // A citation that the gateway wrote must not pass for one of a Messages backend.
    origin: isForeignMark(value.encrypted_index) ? undefined : { protocol: "messages", value },
  });
}

/** The source of a search result is free text, often an address. */
function urlIn(source: unknown): string | undefined {
  return typeof source === "string" && /^https?:\/\//.test(source) ? source : undefined;
}

/** What a signature proves: a Messages backend's own, or what the gateway wrapped for another. */
export function sealOf(signature: unknown): Omit<ReasoningPart, "type" | "text"> {
  if (isForeignMark(signature)) return unwrapSeal(signature);
  return typeof signature === "string" && signature !== "" ? { signature, origin: "messages" } : {};
}

function decodeToolUse(block: Block): ToolCallPart {
  return {
    type: "tool-call",
    id: textOf(block.id),
    name: textOf(block.name),
    arguments: argumentsOf(block.input),
    ...(block.type === "server_tool_use" && { serverSide: true }),
    ...cacheMember(block.cache_control),
  };
}

/** JSON text of a tool's input, "{}" when there is none. */
export function argumentsOf(input: unknown): string {
  return JSON.stringify(input ?? {});
}

export function decodeSearchResult({ tool_use_id: id, content }: JsonObject): SearchResultPart {
  return {
    type: "search-result",
    callId: textOf(id),
    results: objectsOf(content).map(decodeHit),
    ...(isObject(content) && { errorCode: optionalText(content.error_code) ?? "unavailable" }),
  };
}

function decodeHit({ url, title, encrypted_content: content, page_age: pageAge }: JsonObject): SearchHit {
  return {
    url: textOf(url),
    title: textOf(title),
    ...(isForeignMark(content)
      ? compact({ snippet: unwrapSnippet(content) })
      : compact({ encryptedContent: nonEmptyText(content) })),
    ...((typeof pageAge === "string" || pageAge === null) && { pageAge }),
  };
}

function decodeToolResult(block: JsonObject): ToolResultPart {
  return {
    type: "tool-result",
    callId: textOf(block.tool_use_id),
    parts: decodeResultContent(block.content),
    ...compact({ isError: optionalBoolean(block.is_error) }),
    ...cacheMember(block.cache_control),
  };
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
  const text = textsIn(parts).join("\n\n");
  const media: MediaSource = { kind: "base64", mediaType: "text/plain", data: utf8ToBase64(text.trim()) };
  return [documentOf(block, media), ...parts.filter((part) => part.type === "image")];
}

function documentOf(
  { title, context, citations, cache_control: cache }: JsonObject,
  source: MediaSource,
): DocumentPart {
  return {
    type: "document",
    source,
    ...cacheMember(cache),
    ...compact({
      title: optionalText(title),
      context: optionalText(context),
      citations: optionalBoolean(objectOf(citations).enabled),
    }),
  };
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
  const lines = [textOf(block.title), textOf(block.source), "", ...textsIn(decodeContent(block.content))];
  return { type: "text", text: lines.join("\n").trim(), ...cacheMember(block.cache_control) };
}

function textsIn(parts: readonly ContentPart[]): string[] {
  return parts.map((part) => (part.type === "text" ? part.text : ""));
}
