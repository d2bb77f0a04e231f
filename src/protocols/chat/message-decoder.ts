// A chat client's messages -> the neutral conversation.

import type {
  Citation,
  ContentPart,
  DocumentPart,
  ImagePart,
  Message,
  TextPart,
  ToolResultPart,
} from "../../generation/content.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { invalidField, missingField } from "../fields.ts";
import { nonEmptyText, numberOf, objectsOf } from "../reading.ts";
import { decodeMediaPart } from "./media.ts";
import { decodeReasoning } from "./reasoning-details.ts";
import { argumentText, decodeToolCall, missingCallId, readCacheHint } from "./tools.ts";
import { readThoughtSignature, textOfToolError } from "./wire.ts";

export interface Conversation {
  system: TextPart[];
  messages: Message[];
}

interface Reading extends Conversation {
  /** Ids given to the deprecated function calls, by the function's name: results refer to the name only. */
  functionCalls: Map<string, string>;
  /** The message that takes the results of neighbouring tool messages. */
  results: Message | undefined;
}

/** @param messages - checked as readChatRequest does it: objects with a role and content of the right kind */
export function decodeMessages(messages: readonly JsonObject[]): Conversation {
  const reading: Reading = { system: [], messages: [], functionCalls: new Map(), results: undefined };
  for (const [index, message] of messages.entries()) decodeMessage(reading, message, `messages[${index}]`);
  return { system: reading.system, messages: reading.messages };
}

function decodeMessage(reading: Reading, message: JsonObject, path: string): void {
  const { role } = message;
  if (role === "tool" || role === "function") {
    addResult(reading, decodeToolResult(reading, message, path));
    return;
  }
  reading.results = undefined;
  switch (role) {
    case "system":
    case "developer": {
      const parts = decodeSystem(message, path);
      if (reading.messages.length === 0) reading.system.push(...parts);
      else reading.messages.push(named({ role: "system", parts }, message));
      return;
    }
    case "user":
      reading.messages.push(named({ role: "user", parts: decodeContent(message, path) }, message));
      return;
    case "assistant":
      reading.messages.push(named({ role: "assistant", parts: decodeAssistant(reading, message, path) }, message));
      return;
    default:
      throw invalidField(`${path}.role`, "expected system, developer, user, assistant, tool or function.");
  }
}

function named(message: Message, wire: JsonObject): Message {
  const name = nonEmptyText(wire.name);
  return name === undefined ? message : { ...message, name };
}

// ---- Content

function decodeContent(message: JsonObject, path: string): ContentPart[] {
  const { content } = message;
  const parts: ContentPart[] =
    typeof content === "string"
      ? [{ type: "text", text: content }]
      : objectsOf(content).map((part, index) => decodePart(part, `${path}.content[${index}]`));
  // Where the content is a string, the hint stands on the message.
  const cache = readCacheHint(message);
  const last = parts.at(-1);
  if (cache !== undefined && (last?.type === "text" || last?.type === "image" || last?.type === "document")) {
    last.cache = cache;
  }
  return parts;
}

function decodePart(part: JsonObject, path: string): ContentPart {
  const cache = readCacheHint(part);
  if (part.type === "text") return compact({ type: "text", text: requiredText(part, "text", path), cache });
  if (part.type === "refusal") return { type: "refusal", text: requiredText(part, "refusal", path) };
  const media = decodeMediaPart(part, path);
  if (media === undefined) return { type: "opaque", protocol: "chat", value: part };
  return cache !== undefined && (media.type === "image" || media.type === "document") ? { ...media, cache } : media;
}

function requiredText(part: JsonObject, field: string, path: string): string {
  const text = part[field];
  if (typeof text !== "string") throw missingField(`${path}.${field}`, "a string.");
  return text;
}

function decodeSystem(message: JsonObject, path: string): TextPart[] {
  return decodeContent(message, path).map((part, index) => {
    if (part.type === "text") return part;
    throw invalidField(`${path}.content[${index}].type`, "instructions consist of text parts only.");
  });
}

// ---- Assistant

function decodeAssistant(reading: Reading, message: JsonObject, path: string): ContentPart[] {
  const content = decodeContent(message, path);
  const isEmpty = (part: ContentPart): boolean => part.type === "text" && part.text === "";
  const parts: ContentPart[] = [...decodeReasoning(message), ...content.filter((part) => !isEmpty(part))];
  addTextDetails(parts, message);
  const refusal = nonEmptyText(message.refusal);
  if (refusal !== undefined) parts.push({ type: "refusal", text: refusal });
  if (isObject(message.audio)) parts.push({ type: "opaque", protocol: "chat", value: { audio: message.audio } });
  for (const [index, entry] of objectsOf(message.tool_calls).entries()) {
    const part = decodeToolCall(entry, missingCallId(index));
    if (part === undefined) throw missingField(`${path}.tool_calls[${index}].function.name`, "the name of the tool.");
    parts.push(compact({ ...part, cache: readCacheHint(entry) }));
  }
  if (isObject(message.function_call)) parts.push(decodeFunctionCall(reading, message.function_call, path));
  // An answer of nothing is replayed as it was.
  return parts.length > 0 ? parts : content;
}

/** What stands beside the content of an answer and belongs to its text. */
function addTextDetails(parts: readonly ContentPart[], message: JsonObject): void {
  const text = parts.findLast((part) => part.type === "text");
  if (text === undefined) return;
  const signature = readThoughtSignature(message);
  if (signature !== undefined) text.signature = signature;
  const citations = decodeAnnotations(message.annotations);
  if (citations.length > 0) text.citations = citations;
}

export function decodeAnnotations(annotations: unknown): Citation[] {
  return objectsOf(annotations).flatMap(({ url_citation }) => {
    if (!isObject(url_citation) || typeof url_citation.url !== "string") return [];
    const { url, title, start_index, end_index } = url_citation;
    return [
      compact({
        url: url as string,
        title: nonEmptyText(title),
        startIndex: numberOf(start_index),
        endIndex: numberOf(end_index),
      }),
    ];
  });
}

function decodeFunctionCall(reading: Reading, call: JsonObject, path: string): ContentPart {
  const name = nonEmptyText(call.name);
  if (name === undefined) throw missingField(`${path}.function_call.name`, "the name of the function.");
  const id = `function_${reading.messages.length}`;
  reading.functionCalls.set(name, id);
  return { type: "tool-call", id, name, arguments: argumentText(call.arguments) };
}

// ---- Tool results

function addResult(reading: Reading, result: ToolResultPart): void {
  if (reading.results === undefined) {
    reading.results = { role: "user", parts: [] };
    reading.messages.push(reading.results);
  }
  reading.results.parts.push(result);
}

function decodeToolResult(reading: Reading, message: JsonObject, path: string): ToolResultPart {
  const name = nonEmptyText(message.name);
  const parts = decodeContent(message, path).map((part, index) => resultPart(part, `${path}.content[${index}]`));
  const callId = callIdOf(reading, message, name, path);
  const [first] = parts;
  const rest = first?.type === "text" ? textOfToolError(first.text) : undefined;
  if (first?.type === "text" && rest !== undefined) {
    first.text = rest;
    if (rest === "") parts.shift();
  }
  const isError = message.is_error === true || rest !== undefined;
  return compact({ type: "tool-result", callId, parts, name, isError: isError || undefined });
}

function resultPart(part: ContentPart, path: string): TextPart | ImagePart | DocumentPart {
  if (part.type === "text" || part.type === "image" || part.type === "document") return part;
  throw invalidField(`${path}.type`, "tool results consist of text, image_url and file parts.");
}

function callIdOf(reading: Reading, message: JsonObject, name: string | undefined, path: string): string {
  if (message.role === "tool") {
    const id = nonEmptyText(message.tool_call_id);
    if (id === undefined) throw missingField(`${path}.tool_call_id`, "the id of the tool call that this answers.");
    return id;
  }
  if (name === undefined) throw missingField(`${path}.name`, "the name of the function that this answers.");
  const id = reading.functionCalls.get(name);
  if (id === undefined) throw invalidField(`${path}.name`, "no function_call before this message has this name.");
  return id;
}
