// The items of a backend's answer -> parts. The stream decoder uses it for items that came whole.

import type { ContentPart, ReasoningPart, SearchResultPart, ToolCallPart } from "../../generation/content.ts";
import { WEB_SEARCH } from "../../generation/tools.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import { filled, nonEmptyText, objectOf, objectsOf, textOf } from "../reading.ts";
import { decodeCitation } from "./citations.ts";
import { flatName } from "./namespaces.ts";

export function decodeItem(item: JsonObject): ContentPart[] {
  switch (item.type) {
    case "message":
      return decodeMessageContent(item);
    case "reasoning":
      return decodeReasoning(item);
    case "function_call":
    case "custom_tool_call":
      return [decodeCall(item)];
    case "web_search_call":
      return decodeSearch(item);
    case "image_generation_call":
      return [decodeImage(item)];
    default:
      return typeof item.type === "string" ? [{ type: "opaque", protocol: "responses", value: item }] : [];
  }
}

/** Contents without text are left out, as they are in a stream. */
function decodeMessageContent(item: JsonObject): ContentPart[] {
  const parts: ContentPart[] = [];
  for (const content of contentsOf(item)) {
    if (content.text === "") continue;
    if (content.isRefusal) {
      parts.push({ type: "refusal", text: content.text });
      continue;
    }
    const citations = filled(content.annotations.map(decodeCitation));
    parts.push(compact({ type: "text", text: content.text, citations }));
  }
  return parts;
}

export interface MessageContent {
  isRefusal: boolean;
  text: string;
  annotations: JsonObject[];
}

/** In the order of their content indexes. */
export function contentsOf({ content }: JsonObject): MessageContent[] {
  if (typeof content === "string") return [{ isRefusal: false, text: content, annotations: [] }];
  return objectsOf(content).map(readContent);
}

export function readContent(part: JsonObject): MessageContent {
  const isRefusal = part.type === "refusal";
  return {
    isRefusal,
    text: textOf(isRefusal ? part.refusal : part.text),
    annotations: objectsOf(part.annotations),
  };
}

function decodeReasoning(item: JsonObject): ReasoningPart[] {
  const text = thoughtsOf(item);
  const sealed = nonEmptyText(item.encrypted_content);
  if (text === "" && sealed === undefined) return [];
  const origin = sealed && "responses";
  return [compact({ type: "reasoning", itemId: nonEmptyText(item.id), text, origin, sealed })];
}

/** The summary of a reasoning item, or its raw thoughts where it has no summary; parts stand apart by an empty line. */
export function thoughtsOf({ summary, content }: JsonObject): string {
  return joined(summary) || joined(content);
}

function joined(parts: unknown): string {
  const texts = objectsOf(parts).map((part) => textOf(part.text));
  return texts.filter((text) => text !== "").join("\n\n");
}

/** The id that an output answers is call_id; some engines know only one id. */
export function decodeCall(item: JsonObject): ToolCallPart {
  const id = nonEmptyText(item.id);
  const isCustom = item.type === "custom_tool_call";
  return compact({
    type: "tool-call",
    id: nonEmptyText(item.call_id) ?? id ?? "",
    name: flatName(item),
    custom: isCustom || undefined,
    itemId: id,
    arguments: isCustom ? textOf(item.input) : argumentsOf(item.arguments),
  });
}

/** JSON text; engines that give the object itself are understood. */
export function argumentsOf(value: unknown): string {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : textOf(value);
}

function decodeSearch(item: JsonObject): [ToolCallPart, SearchResultPart] {
  const callId = textOf(item.id);
  const { sources, ...action } = objectOf(item.action);
  const args = action.type === "search" || action.type === undefined ? { query: textOf(action.query) } : action;
  const results = objectsOf(sources).map((source) => ({ url: textOf(source.url), title: textOf(source.title) }));
  return [
    { type: "tool-call", id: callId, name: WEB_SEARCH, serverSide: true, arguments: JSON.stringify(args) },
    { type: "search-result", callId, results, ...(item.status === "failed" && { errorCode: "unavailable" }) },
  ];
}

function decodeImage(item: JsonObject): ContentPart {
  const data = nonEmptyText(item.result);
  if (data === undefined) return { type: "opaque", protocol: "responses", value: item };
  const mediaType = `image/${nonEmptyText(item.output_format) ?? "png"}`;
  return { type: "image", source: { kind: "base64", mediaType, data } };
}
