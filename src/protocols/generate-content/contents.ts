// The neutral conversation -> contents and systemInstruction.
//
// All instructions go to systemInstruction, those in the middle of the conversation too: no other place makes the model
// obey them. Neighbours of one role are joined, calls get their results in the turn behind them, and the user begins.

import type { ContentPart, Message, ReasoningPart, TextPart, ToolCallPart } from "../../generation/content.ts";
import type { DropList } from "../../generation/dropped.ts";
import { isBlank } from "../reading.ts";
import { CONVERSATION_START, searchText } from "../request-words.ts";
import { inputOf } from "../tool-input.ts";
import type { Encoding } from "./encoding.ts";
import { historicName } from "./function-names.ts";
import { encodeMedia } from "./media.ts";
import { signatureOfCall } from "./thought-signature.ts";
import { orphanText, pairResults } from "./tool-results.ts";
import type { Content, GeminiPart } from "./wire.ts";

export interface Conversation {
  contents: Content[];
  /** Parts of systemInstruction; the caller may add to them. */
  system: GeminiPart[];
}

export function encodeConversation(encoding: Encoding): Conversation {
  const { request, dropped } = encoding;
  const system = request.system.flatMap((part) => encodeText(part, encoding));
  const turns = mergeTurns(request.messages, system, encoding);
  return { contents: withStart(encodeTurns(turns, encoding), dropped), system };
}

interface Turn {
  role: "user" | "model";
  parts: ContentPart[];
}

function mergeTurns(messages: readonly Message[], system: GeminiPart[], context: Encoding): Turn[] {
  const turns: Turn[] = [];
  for (const { role, parts, name } of messages) {
    if (name !== undefined) context.dropped.add("messages[].name");
    if (role === "system") {
      if (turns.length > 0) context.dropped.add("system message", "instructions stand at the beginning only");
      for (const part of parts) if (part.type === "text") system.push(...encodeText(part, context));
      continue;
    }
    const wireRole = role === "assistant" ? "model" : "user";
    const last = turns.at(-1);
    if (last?.role === wireRole) last.parts.push(...parts);
    else turns.push({ role: wireRole, parts: [...parts] });
  }
  return turns;
}

function encodeTurns(turns: readonly Turn[], context: Encoding): Content[] {
  const contents: Content[] = [];
  let calls: ToolCallPart[] = [];
  for (const turn of turns) {
    if (turn.role === "user") {
      addContent(contents, "user", encodeUserParts(turn.parts, calls, context));
      calls = [];
    } else {
      calls = turn.parts.filter(isOwnCall);
      addContent(contents, "model", encodeModelParts(turn.parts, context));
    }
  }
  // Calls at the very end have no results.
  if (calls.length > 0) addContent(contents, "user", encodeUserParts([], calls, context));
  return contents;
}

/** A turn of which nothing is left is left out, and its neighbours become one. */
function addContent(contents: Content[], role: Content["role"], parts: GeminiPart[]): void {
  if (parts.length === 0) return;
  const last = contents.at(-1);
  if (last?.role === role) last.parts.push(...parts);
  else contents.push({ role, parts });
}

function withStart(contents: Content[], dropped: DropList): Content[] {
  if (contents[0]?.role !== "model") return contents;
  dropped.add("messages[0]", "a conversation begins with the user here; a line was added");
  return [{ role: "user", parts: [{ text: CONVERSATION_START }] }, ...contents];
}

function isOwnCall(part: ContentPart): part is ToolCallPart {
  return part.type === "tool-call" && part.serverSide !== true;
}

function encodeUserParts(
  parts: readonly ContentPart[],
  calls: readonly ToolCallPart[],
  context: Encoding,
): GeminiPart[] {
  const results = parts.filter((part) => part.type === "tool-result");
  const { responses, media, orphans } = pairResults(calls, results, context);
  const encoded = [...responses, ...media];
  for (const part of parts) {
    if (part.type !== "tool-result") encoded.push(...encodeUserPart(part, context));
    else if (orphans.includes(part)) encoded.push(...orphanText(part, context));
  }
  return encoded;
}

function encodeUserPart(part: ContentPart, context: Encoding): GeminiPart[] {
  switch (part.type) {
    case "reasoning":
    case "tool-call":
      context.dropped.add(`${part.type} in a user message`);
      return [];
    default:
      return encodePart(part, context);
  }
}

function encodeModelParts(parts: readonly ContentPart[], context: Encoding): GeminiPart[] {
  let hasCall = false;
  const encoded: GeminiPart[] = [];
  for (const part of parts) {
    if (part.type === "reasoning") encoded.push(...encodeThought(part, context));
    else if (part.type !== "tool-call") encoded.push(...encodePart(part, context));
    else if (part.serverSide === true) {
      context.dropped.add(`call of ${part.name}`, "another backend ran the tool; its result is told as text");
    } else {
      encoded.push(encodeCall(part, !hasCall, context));
      hasCall = true;
    }
  }
  return encoded;
}

/** Parts that either side may say. */
function encodePart(part: ContentPart, context: Encoding): GeminiPart[] {
  switch (part.type) {
    case "text":
      return encodeText(part, context);
    case "refusal":
      return part.text === "" ? [] : [{ text: part.text }];
    case "search-result":
      return [{ text: searchText(part) }];
    case "opaque":
      if (part.protocol === "generate-content") return [part.value];
      context.dropped.add(typeof part.value.type === "string" ? part.value.type : "part");
      return [];
    case "image":
    case "document":
    case "audio":
    case "video":
      listMediaHints(part, context.dropped);
      return part.type === "document" && part.context !== undefined && !isBlank(part.context)
        ? [{ text: part.context }, encodeMedia(part)]
        : [encodeMedia(part)];
    default:
      context.dropped.add(`${part.type} in an assistant message`);
      return [];
  }
}

function listMediaHints(part: ContentPart, dropped: DropList): void {
  if (part.type === "image" && part.detail !== undefined && part.detail !== "auto") dropped.add("image_url.detail");
  if (part.type === "document") {
    if (part.title !== undefined) dropped.add("filename");
    if (part.citations === true) dropped.add("citations");
  }
  if ("cache" in part && part.cache !== undefined) dropped.add("cache_control");
}

/** An empty text is refused, unless a signature stands on it. */
function encodeText({ text, signature, citations, cache }: TextPart, { rules, dropped }: Encoding): GeminiPart[] {
  if (cache !== undefined) dropped.add("cache_control");
  if (citations !== undefined && citations.length > 0) dropped.add("citations of earlier answers");
  const sign = signature !== undefined && rules.signatures !== "none" ? { thoughtSignature: signature } : undefined;
  return text === "" && sign === undefined ? [] : [{ text, ...sign }];
}

/** Thoughts go back only with their proof. */
function encodeThought({ text, signature, origin }: ReasoningPart, { rules, dropped }: Encoding): GeminiPart[] {
  if (origin === "generate-content" && signature !== undefined && rules.signatures !== "none") {
    return [{ text, thought: true, thoughtSignature: signature }];
  }
  dropped.add("reasoning of earlier answers", "made by another service, or without its signature");
  return [];
}

function encodeCall(call: ToolCallPart, isFirst: boolean, { rules, target, dropped }: Encoding): GeminiPart {
  if (call.cache !== undefined) dropped.add("cache_control");
  const id = target.kind.isCloud ? {} : { id: call.id };
  const part: GeminiPart = { functionCall: { ...id, name: historicName(call.name), args: inputOf(call) } };
  const thoughtSignature = signatureOfCall(call, isFirst, rules, target);
  return thoughtSignature === undefined ? part : { ...part, thoughtSignature };
}
