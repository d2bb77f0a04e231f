// The neutral conversation -> messages and system. The API wants turns of user and assistant by turns, none of them empty,
// the user first, and the results of all calls at the beginning of the turn behind them.

import type { ContentPart, Message, TextPart, ToolCallPart, ToolResultPart } from "../../generation/content.ts";
import { pairedResults } from "../../generation/lost-results.ts";
import { isBlank, textOf } from "../reading.ts";
import { CONVERSATION_START, searchText } from "../request-words.ts";
import { inputOf } from "../tool-input.ts";
import { cachePoint } from "./cache-points.ts";
import type { Encoding } from "./encoding.ts";
import { encodeMedia } from "./media.ts";
import type { ConverseBlock, ConverseMessage } from "./wire.ts";

export interface Conversation {
  messages: ConverseMessage[];
  /** The caller may add to it. */
  system: ConverseBlock[];
}

const NOTHING_SAID = "(There is no message. Follow the instructions.)";
const GO_ON = "Go on exactly where your last message ends. Do not repeat any of it.";
/** A document has to stand beside a text. */
const SEE_FILES = "(See the attached files.)";
const EMPTY_RESULT = "(The tool returned nothing.)";

export function encodeConversation(encoding: Encoding): Conversation {
  const { request, dropped } = encoding;
  const system = request.system.flatMap((part) => encodeText(part, "system", encoding));
  const spoken: Message[] = [];
  for (const message of request.messages) {
    if (message.name !== undefined) dropped.add("messages[].name");
    if (message.role !== "system") {
      spoken.push(message);
      continue;
    }
    if (spoken.length > 0) dropped.add("system message", "the model takes instructions at the beginning only");
    for (const part of message.parts) if (part.type === "text") system.push(...encodeText(part, "system", encoding));
  }
  const messages: ConverseMessage[] = [];
  for (const turn of turnsOf(pairedResults(spoken, dropped))) {
    const content = turn.role === "user" ? encodeUser(turn.parts, encoding) : encodeAssistant(turn.parts, encoding);
    addMessage(messages, turn.role, content);
  }
  return { messages: withEnds(messages, encoding), system };
}

interface Turn {
  role: "user" | "assistant";
  parts: ContentPart[];
}

function turnsOf(messages: readonly Message[]): Turn[] {
  const turns: Turn[] = [];
  for (const { role, parts } of messages) {
    const speaker = role === "assistant" ? "assistant" : "user";
    const last = turns.at(-1);
    if (last?.role === speaker) last.parts.push(...parts);
    else turns.push({ role: speaker, parts: [...parts] });
  }
  return turns;
}

/** A turn of which nothing is left is left out, and its neighbours become one. */
function addMessage(messages: ConverseMessage[], role: ConverseMessage["role"], content: ConverseBlock[]): void {
  if (content.every((block) => block.cachePoint !== undefined)) return;
  const last = messages.at(-1);
  if (last?.role === role) last.content.push(...content);
  else messages.push({ role, content });
}

function withEnds(messages: ConverseMessage[], { rules, dropped }: Encoding): ConverseMessage[] {
  if (messages.length === 0) {
    dropped.add("messages", "a conversation needs a message here; a line was added");
    return [{ role: "user", content: [{ text: NOTHING_SAID }] }];
  }
  if (messages[0]?.role !== "user") {
    messages.unshift({ role: "user", content: [{ text: CONVERSATION_START }] });
    dropped.add("messages[0]", "a conversation begins with the user here; a line was added");
  }
  const last = messages.at(-1);
  if (last?.role !== "assistant") return messages;
  const end = last.content.at(-1);
  if (end?.text !== undefined) end.text = textOf(end.text).trimEnd();
  if (rules.prefill) return messages;
  dropped.add("prefill", "the model does not go on in an assistant message; it is asked to in words");
  return [...messages, { role: "user", content: [{ text: GO_ON }] }];
}

function encodeUser(parts: readonly ContentPart[], encoding: Encoding): ConverseBlock[] {
  const results: ConverseBlock[] = [];
  const beside: ConverseBlock[] = [];
  const others: ConverseBlock[] = [];
  for (const part of parts) {
    if (part.type === "tool-result") {
      const encoded = encodeResult(part, encoding);
      results.push(...encoded.result);
      beside.push(...encoded.beside);
    } else others.push(...encodeUserPart(part, encoding));
  }
  const content = [...results, ...beside, ...others];
  const lacksText = content.some(({ document }) => document !== undefined) && !content.some((block) => "text" in block);
  return lacksText ? [...content, { text: SEE_FILES }] : content;
}

function encodeUserPart(part: ContentPart, encoding: Encoding): ConverseBlock[] {
  if (part.type !== "reasoning" && part.type !== "tool-call") return encodePart(part, encoding);
  encoding.dropped.add(`${part.type} in a user message`);
  return [];
}

function encodeAssistant(parts: readonly ContentPart[], encoding: Encoding): ConverseBlock[] {
  return parts.flatMap((part) => {
    switch (part.type) {
      case "reasoning":
        return encodeReasoning(part, encoding);
      case "tool-call":
        return encodeCall(part, encoding);
      default:
        return encodePart(part, encoding);
    }
  });
}

/** Parts that either side may say. */
function encodePart(part: ContentPart, encoding: Encoding): ConverseBlock[] {
  const { dropped } = encoding;
  switch (part.type) {
    case "text":
      return encodeText(part, "messages", encoding);
    case "refusal":
      return isBlank(part.text) ? [] : [{ text: part.text }];
    case "search-result":
      return [{ text: searchText(part) }];
    case "opaque":
      dropped.add(typeof part.value.type === "string" ? part.value.type : "part");
      return [];
    case "image":
    case "document":
      return [encodeMedia(part, encoding), ...cachePoint(part.cache, "messages", encoding)];
    case "audio":
    case "video":
      return [encodeMedia(part, encoding)];
    default:
      dropped.add(`${part.type} in an assistant message`);
      return [];
  }
}

/** A blank text is refused. */
function encodeText(
  { text, citations, cache }: TextPart,
  place: "system" | "messages",
  encoding: Encoding,
): ConverseBlock[] {
  if (isBlank(text)) return [];
  if (citations !== undefined && citations.length > 0) encoding.dropped.add("citations of earlier answers");
  return [{ text }, ...cachePoint(cache, place, encoding)];
}

/** Thoughts go back only with their proof. */
function encodeReasoning(part: Extract<ContentPart, { type: "reasoning" }>, { dropped }: Encoding): ConverseBlock[] {
  if (part.origin === "converse" && part.sealed !== undefined) {
    return [{ reasoningContent: { redactedContent: part.sealed } }];
  }
  if (part.origin === "converse" && part.signature !== undefined) {
    return [{ reasoningContent: { reasoningText: { text: part.text, signature: part.signature } } }];
  }
  dropped.add("reasoning of earlier answers", "made by another service, or without its signature");
  return [];
}

function encodeCall(call: ToolCallPart, encoding: Encoding): ConverseBlock[] {
  if (call.serverSide === true) {
    encoding.dropped.add(`call of ${call.name}`, "another backend ran the tool; its result is told as text");
    return [];
  }
  const toolUse = { toolUseId: callId(call.id), name: historicName(call.name), input: inputOf(call) };
  return [{ toolUse }, ...cachePoint(call.cache, "messages", encoding)];
}

interface EncodedResult {
  result: ConverseBlock[];
  /** What of it cannot stand inside. */
  beside: ConverseBlock[];
}

function encodeResult({ callId: id, parts, isError, cache }: ToolResultPart, encoding: Encoding): EncodedResult {
  const { richResults } = encoding.rules;
  const texts: ConverseBlock[] = [];
  const media: ConverseBlock[] = [];
  for (const part of parts) {
    if (part.type !== "text") media.push(encodeMedia(part, encoding));
    else if (!isBlank(part.text)) texts.push({ text: part.text });
  }
  if (isError === true && !richResults) texts.unshift({ text: "Error:" });
  const inside = richResults ? [...texts, ...media] : texts;
  const toolResult = {
    toolUseId: callId(id),
    content: inside.length > 0 ? inside : [{ text: EMPTY_RESULT }],
    ...(isError === true && richResults && { status: "error" }),
  };
  const beside = richResults || media.length === 0 ? [] : [{ text: "Files that the tool returned:" }, ...media];
  return { result: [{ toolResult }, ...cachePoint(cache, "messages", encoding)], beside };
}

const MAX_NAME_LENGTH = 64;

/** The name of a tool in earlier turns, in the letters that the API takes. */
export function historicName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, MAX_NAME_LENGTH) || "unknown";
}

/** The same id for a call and its result, made of the letters that the API takes. */
function callId(id: string): string {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(id)) return id;
  return `${id.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 48)}_${Bun.hash.crc32(id).toString(16)}`;
}
