// The neutral conversation -> messages for a chat backend.

import type {
  ContentPart,
  DocumentPart,
  ImagePart,
  Message,
  ReasoningPart,
  SearchResultPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
} from "../../generation/content.ts";
import type { DropList } from "../../generation/dropped.ts";
import { pairedResults } from "../../generation/lost-results.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import type { BackendTarget } from "../protocol.ts";
import { filled } from "../reading.ts";
import { audioFormat, dataUrl } from "./media.ts";
import type { ChatQuirks } from "./quirks.ts";
import { encodeOwnDetail } from "./reasoning-details.ts";
import { markToolError, thoughtSignature, unsupported } from "./wire.ts";

interface MessageTarget {
  quirks: ChatQuirks;
  dropped: DropList;
  kind: string;
  signatureOf: BackendTarget["signatureOf"];
  /** The protocol that the client speaks. */
  origin: GenerationRequest["origin"]["protocol"];
}

/** Between texts that are joined because the target takes only one. */
const PARAGRAPH = "\n\n";

export function encodeMessages(request: GenerationRequest, target: MessageTarget): JsonObject[] {
  const messages: JsonObject[] = [];
  if (request.system.length > 0) messages.push(encodeSystem(request.system, target));
  for (const turn of turnsOf(pairedResults(request.messages, target.dropped))) {
    const role = turn[0]?.role;
    if (role === "assistant") messages.push(...encodeAssistantTurn(turn, target));
    else if (role === "user") messages.push(...encodeUserTurn(turn, target));
    else for (const message of turn) messages.push(encodeSystem(textsOf(message), target, message.name));
  }
  return messages;
}

/** Neighbouring messages of one role. */
function turnsOf(messages: readonly Message[]): Message[][] {
  const turns: Message[][] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    if (last?.[0]?.role === message.role) last.push(message);
    else turns.push([message]);
  }
  return turns;
}

/** One message, because many chat templates take only one. */
function encodeSystem(parts: readonly TextPart[], { dropped }: MessageTarget, name?: string): JsonObject {
  for (const part of parts) noteHints(part, dropped);
  return compact({ role: "system", name, content: parts.map((part) => part.text).join(PARAGRAPH) });
}

function textsOf(message: Message): TextPart[] {
  return message.parts.filter((part) => part.type === "text");
}

function noteHints(part: ContentPart, dropped: DropList): void {
  if ("cache" in part && part.cache !== undefined) dropped.add("cache_control");
}

// ---- User

/** Results directly behind the calls they answer, then what came with them as media, then what the user says. */
function encodeUserTurn(turn: readonly Message[], target: MessageTarget): JsonObject[] {
  const results: JsonObject[] = [];
  const moved: JsonObject[] = [];
  const said: { name: string | undefined; content: JsonObject[] }[] = [];
  for (const message of turn) {
    const content: JsonObject[] = [];
    for (const part of message.parts) {
      noteHints(part, target.dropped);
      if (part.type === "tool-result") results.push(encodeToolResult(part, moved, target));
      else content.push(...encodeUserPart(part, target));
    }
    if (content.length > 0) said.push({ name: message.name, content });
  }
  if (moved.length > 0) said.unshift({ name: undefined, content: moved });
  return [...results, ...mergeSaid(said, target)];
}

/** What came with tool results joins what the user says; strict chat templates want no two messages of the user. */
function mergeSaid(
  said: readonly { name: string | undefined; content: JsonObject[] }[],
  { quirks }: MessageTarget,
): JsonObject[] {
  const merged: (typeof said)[number][] = [];
  for (const message of said) {
    const last = merged.at(-1);
    if (quirks.joinsText && last !== undefined && last.name === message.name) last.content.push(...message.content);
    else merged.push({ ...message, content: [...message.content] });
  }
  return merged.map(({ name, content }) => compact({ role: "user", name, content: simplify(content, quirks) }));
}

/** A string where one will do: the form that every backend reads. */
function simplify(parts: readonly JsonObject[], quirks: ChatQuirks): unknown {
  const texts = parts.map((part) => (part.type === "text" ? part.text : undefined));
  if (!texts.every((text) => typeof text === "string")) return parts;
  return texts.length === 1 || quirks.joinsText ? texts.join(PARAGRAPH) : parts;
}

function encodeUserPart(part: ContentPart, target: MessageTarget): JsonObject[] {
  const { quirks, kind } = target;
  switch (part.type) {
    case "text":
      return [{ type: "text", text: part.text }];
    case "image":
      return [encodeImage(part)];
    case "document":
      return [encodeDocument(part, target)];
    case "audio": {
      const format = part.source.kind === "base64" ? audioFormat(part.source.mediaType) : undefined;
      if (!quirks.audio || part.source.kind !== "base64" || format === undefined) {
        throw unsupported("messages", `backends of type ${kind} cannot be given this audio.`);
      }
      return [{ type: "input_audio", input_audio: { data: part.source.data, format } }];
    }
    case "video":
      if (!quirks.video || part.source.kind === "file") {
        throw unsupported("messages", `backends of type ${kind} cannot be given videos.`);
      }
      return [{ type: "video_url", video_url: { url: addressOf(part.source) } }];
    case "opaque":
      if (part.protocol === "chat") return [part.value];
      target.dropped.add(nameOfOpaque(part.value));
      return [];
    default:
      target.dropped.add(`${part.type} in a user message`);
      return [];
  }
}

function nameOfOpaque(value: JsonObject): string {
  return typeof value.type === "string" ? value.type : "an unknown part";
}

function addressOf(source: Exclude<ImagePart["source"], { kind: "file" }>): string {
  return source.kind === "url" ? source.url : dataUrl(source);
}

function encodeImage({ source, detail }: ImagePart): JsonObject {
  if (source.kind === "file") {
    throw unsupported(
      "messages",
      "chat completions cannot be given an image by its file id; give its address or its data.",
    );
  }
  return { type: "image_url", image_url: compact({ url: addressOf(source), detail }) };
}

function encodeDocument(part: DocumentPart, target: MessageTarget): JsonObject {
  const { source, title, context } = part;
  if (part.citations === true) target.dropped.add("citations");
  if (source.kind === "base64" && isText(source.mediaType)) {
    const text = Buffer.from(source.data, "base64").toString("utf8");
    const heading = [title, context].filter((line) => line !== undefined && line !== "").join("\n");
    return { type: "text", text: heading === "" ? text : `${heading}${PARAGRAPH}${text}` };
  }
  return { type: "file", file: encodeFile(part, target) };
}

function isText(mediaType: string): boolean {
  return mediaType.startsWith("text/") || mediaType === "application/json";
}

function encodeFile({ source, title, context }: DocumentPart, target: MessageTarget): JsonObject {
  const { quirks, kind, origin } = target;
  if (!quirks.files) throw unsupported("messages", `backends of type ${kind} cannot be given documents, only text.`);
  if (source.kind === "url") {
    throw unsupported("messages", "chat completions cannot be given a document by its address; give its data.");
  }
  if (context !== undefined) target.dropped.add("document context");
  if (source.kind === "base64") return { filename: title ?? "document.pdf", file_data: dataUrl(source) };
  // File ids are known to the vendor of the format that named them.
  if (origin !== "chat" && origin !== "responses") {
    throw unsupported("messages", "the backend does not know this file id; give the document's data.");
  }
  return { file_id: source.fileId };
}

// ---- Tool results

function encodeToolResult(part: ToolResultPart, moved: JsonObject[], target: MessageTarget): JsonObject {
  const texts: string[] = [];
  const media: JsonObject[] = [];
  for (const piece of part.parts) {
    noteHints(piece, target.dropped);
    const [encoded] = encodeUserPart(piece, target);
    if (encoded === undefined) continue;
    if (encoded.type === "text") texts.push(String(encoded.text));
    else media.push(encoded);
  }
  if (media.length > 0) {
    texts.push("[The tool returned files, which follow in the next message.]");
    moved.push({ type: "text", text: `Returned by the tool call ${part.callId}:` }, ...media);
  }
  const text = texts.join("\n");
  return {
    role: "tool",
    tool_call_id: part.callId,
    content: part.isError === true ? markToolError(text) : text,
  };
}

// ---- Assistant

interface MessageDraft {
  /** Texts of one message are one text, as they were when they were streamed. */
  text: string;
  reasoning: string;
  details: JsonObject[];
  refusal: string;
  calls: ToolCallPart[];
  /** Calls of server-side tools whose results are still to come. */
  serverCalls: ToolCallPart[];
  audio: unknown;
  isEmpty: boolean;
}

function newDraft(serverCalls: ToolCallPart[] = [], calls: ToolCallPart[] = []): MessageDraft {
  return {
    text: "",
    reasoning: "",
    details: [],
    refusal: "",
    calls,
    serverCalls,
    audio: undefined,
    isEmpty: calls.length === 0,
  };
}

/** One message, unless results of server-side tools stand between. */
function encodeAssistantTurn(turn: readonly Message[], target: MessageTarget): JsonObject[] {
  const output: JsonObject[] = [];
  let draft = newDraft();
  for (const message of turn) {
    if (draft.text !== "" && message.parts.some((part) => part.type === "text")) draft.text += PARAGRAPH;
    for (const part of message.parts) {
      noteHints(part, target.dropped);
      if (part.type === "search-result") draft = addSearch(output, draft, part, target);
      else addAssistantPart(draft, part, target);
    }
  }
  if (draft.serverCalls.length > 0) target.dropped.add("server tool call without a result");
  if (!draft.isEmpty || output.length === 0) output.push(encodeDraft(draft, draft.calls, target));
  return output;
}

function addAssistantPart(draft: MessageDraft, part: ContentPart, target: MessageTarget): void {
  const { quirks, dropped } = target;
  draft.isEmpty = false;
  switch (part.type) {
    case "text":
      if (part.citations !== undefined && part.citations.length > 0) dropped.add("citations");
      draft.text += part.text;
      return;
    case "refusal":
      if (quirks.refusals) draft.refusal += part.text;
      else draft.text += part.text;
      return;
    case "reasoning":
      addReasoning(draft, part, target);
      return;
    case "tool-call":
      (part.serverSide === true ? draft.serverCalls : draft.calls).push(part);
      return;
    case "opaque":
      if (part.protocol === "chat" && part.value.audio !== undefined) draft.audio = part.value.audio;
      else dropped.add(nameOfOpaque(part.value));
      return;
    default:
      dropped.add(`${part.type} in an assistant message`);
  }
}

/** Proofs go back to where a client's own message would bring them: engines of known kinds read the text alone. */
function addReasoning(draft: MessageDraft, part: ReasoningPart, { quirks, dropped }: MessageTarget): void {
  const takesProofs = !quirks.isStrict && !quirks.mirrorsReasoning;
  const detail = takesProofs ? encodeOwnDetail(part) : undefined;
  if (detail !== undefined) draft.details.push(detail);
  const takesText = quirks.reasoning.length > 0 && part.text !== "";
  if (takesText) draft.reasoning += draft.reasoning === "" ? part.text : PARAGRAPH + part.text;
  else if (detail === undefined) dropped.add("reasoning of earlier turns");
}

/** A search that a server made becomes a tool call and its result; the rest of the turn follows in a new message. */
function addSearch(
  output: JsonObject[],
  draft: MessageDraft,
  result: SearchResultPart,
  target: MessageTarget,
): MessageDraft {
  const call = draft.serverCalls.find(({ id }) => id === result.callId);
  if (call === undefined) {
    target.dropped.add("search result without its call");
    return draft;
  }
  output.push(encodeDraft(draft, [call], target));
  output.push({ role: "tool", tool_call_id: call.id, content: describeSearch(result) });
  return newDraft(
    draft.serverCalls.filter((other) => other !== call),
    draft.calls,
  );
}

function describeSearch({ results, errorCode }: SearchResultPart): string {
  if (errorCode !== undefined) return markToolError(errorCode);
  const hits = results.map(({ title, url, pageAge, snippet }) =>
    [title, url, pageAge, snippet].filter((line) => line !== undefined && line !== null && line !== "").join("\n"),
  );
  return hits.length === 0 ? "No results." : hits.join(PARAGRAPH);
}

function encodeDraft(draft: MessageDraft, calls: readonly ToolCallPart[], target: MessageTarget): JsonObject {
  const { quirks } = target;
  const saysMore = calls.length > 0 || draft.refusal !== "" || draft.audio !== undefined;
  const reasoning = draft.reasoning === "" ? [] : quirks.reasoning.map((field) => [field, draft.reasoning] as const);
  return compact({
    role: "assistant",
    content: draft.text === "" && saysMore && quirks.refusals ? null : draft.text,
    refusal: draft.refusal === "" ? undefined : draft.refusal,
    ...Object.fromEntries(reasoning),
    reasoning_details: filled(draft.details),
    tool_calls: calls.length === 0 ? undefined : calls.map((call) => encodeToolCall(call, target)),
    audio: draft.audio,
  });
}

function encodeToolCall(call: ToolCallPart, { quirks, signatureOf }: MessageTarget): JsonObject {
  const { id, name, custom } = call;
  // Engines know the text of thoughts alone, as in bodies that pass (quirks.ts).
  const takesProofs = !quirks.isStrict && !quirks.mirrorsReasoning;
  const signature = takesProofs ? (call.signature ?? signatureOf?.(id)) : undefined;
  return compact({
    id,
    type: custom === true ? "custom" : "function",
    ...(custom === true
      ? { custom: { name, input: call.arguments } }
      : { function: { name, arguments: call.arguments === "" ? "{}" : call.arguments } }),
    extra_content: signature === undefined ? undefined : thoughtSignature(signature),
  });
}
