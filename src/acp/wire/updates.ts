// Updates of a turn -> session/update, one notification for both protocols: `update` is ACP's form, `content`
// Signalbox's own, whose blocks hold the answer and nothing else.

import type { ToolCallView, ToolContent, ToolLocation, Update } from "../../agent/updates.ts";
import type { ImagePart } from "../../generation/content.ts";
import { compact, type JsonObject } from "../../lib/json.ts";

/** A picture beyond this stands in `update` only, so that the line stays one that clients take. */
const MAX_REPEATED_LENGTH = 8 * 1024 * 1024;

export interface SessionUpdate {
  update: JsonObject;
  content: JsonObject[];
}

/** @param takesNotices - the client knows notices; to others they are thoughts, and warnings a part of the answer */
export function encodeUpdate(told: Update, takesNotices: boolean): SessionUpdate {
  switch (told.type) {
    case "text":
      return messageChunk("agent_message_chunk", textBlock(told.text));
    case "image":
      return messageChunk("agent_message_chunk", imageBlock(told.part));
    case "thought":
      return thoughtChunk(told.text);
    case "tool-call":
      return silent({ sessionUpdate: "tool_call", ...encodeCall(told.call) });
    case "tool-call-change":
      return silent({ sessionUpdate: "tool_call_update", toolCallId: told.toolCallId, ...encodeChange(told.change) });
    case "plan":
      return silent({ sessionUpdate: "plan", entries: told.entries });
    case "usage":
      return silent(compact({ sessionUpdate: "usage_update", used: told.used, size: told.size, cost: told.cost }));
    case "notice":
      return encodeNotice(told, takesNotices);
  }
}

/** Many editors fold thoughts away, and the reason for a missing tool would not be read. */
function encodeNotice({ text, severity = "info" }: Extract<Update, { type: "notice" }>, takes: boolean): SessionUpdate {
  if (takes) return silent({ sessionUpdate: "notice", severity, title: text });
  if (severity === "info") return thoughtChunk(`${text}\n`);
  return messageChunk("agent_message_chunk", textBlock(`${text}\n\n`));
}

/** One block for each chunk: lists are no chunks. */
export function messageChunk(sessionUpdate: string, block: JsonObject): SessionUpdate {
  const { data } = block;
  const isHuge = typeof data === "string" && data.length > MAX_REPEATED_LENGTH;
  return { update: { sessionUpdate, content: publicBlock(block) }, content: isHuge ? [] : [block] };
}

/** No block in `content`: clients that read only this form would show the thought as a part of the answer. */
export function thoughtChunk(text: string): SessionUpdate {
  return silent({ sessionUpdate: "agent_thought_chunk", content: textBlock(text) });
}

export function silent(update: JsonObject): SessionUpdate {
  return { update, content: [] };
}

export function encodeCall(call: ToolCallView): JsonObject {
  const { toolCallId, title, kind, status, rawInput, rawOutput } = call;
  return compact({
    toolCallId,
    title,
    kind,
    status,
    content: call.content.map(encodeToolContent),
    locations: call.locations.map(encodeLocation),
    rawInput,
    rawOutput,
  });
}

function encodeChange(change: Partial<ToolCallView>): JsonObject {
  const { title, kind, status, content, locations, rawInput, rawOutput } = change;
  return compact({
    title,
    kind,
    status,
    content: content?.map(encodeToolContent),
    locations: locations?.map(encodeLocation),
    rawInput,
    rawOutput,
  });
}

function encodeToolContent(content: ToolContent): JsonObject {
  switch (content.type) {
    case "part": {
      const { part } = content;
      return { type: "content", content: part.type === "text" ? textBlock(part.text) : publicBlock(imageBlock(part)) };
    }
    case "diff":
      return compact({ type: "diff", path: content.path, oldText: content.oldText, newText: content.newText });
    case "terminal":
      return { type: "terminal", terminalId: content.terminalId };
  }
}

/** Uses the names of both protocols. */
function encodeLocation({ path, line }: ToolLocation): JsonObject {
  return compact({ path, line, uri: Bun.pathToFileURL(path).href, startLine: line });
}

export function textBlock(text: string): JsonObject {
  return { type: "text", text };
}

/** An image by its bytes, with both names of its type; one that stands elsewhere is a link. */
export function imageBlock({ source }: Pick<ImagePart, "source">): JsonObject {
  if (source.kind === "base64") {
    const { data, mediaType } = source;
    return { type: "image", data, mimeType: mediaType, mediaType };
  }
  if (source.kind === "file") return textBlock(`[image ${source.fileId}]`);
  return compact({ type: "resource_link", uri: source.url, name: "image", mimeType: source.mediaType });
}

function publicBlock(block: JsonObject): JsonObject {
  const { mediaType: _, ...rest } = block;
  return rest;
}
