// A conversation as it was kept -> the updates that show it again.

import { ownTool } from "../agent/tools/own-tools.ts";
import type { ToolContent } from "../agent/updates.ts";
import type { ContentPart, Message, ToolCallPart, ToolResultPart } from "../generation/content.ts";
import { type JsonObject, parseObject } from "../lib/json.ts";
import type { CallNote } from "./storage/store.ts";
import {
  encodeCall,
  imageBlock,
  messageChunk,
  type SessionUpdate,
  silent,
  textBlock,
  thoughtChunk,
} from "./wire/updates.ts";

/** @param calls - how calls were shown, by their ids */
export function* replayOf(history: readonly Message[], calls: ReadonlyMap<string, CallNote>): Generator<SessionUpdate> {
  /** How often an id was used: some models count from the start in each turn, and an update names one call. */
  const uses = new Map<string, number>();
  for (const [index, { role, parts }] of history.entries()) {
    if (role === "system") continue;
    for (const part of parts) {
      if (part.type === "tool-call") {
        const count = uses.get(part.id) ?? 0;
        uses.set(part.id, count + 1);
        const toolCallId = count === 0 ? part.id : `${part.id}-${count + 1}`;
        yield callUpdate(part, { toolCallId, note: calls.get(part.id), result: resultOf(part.id, history, index) });
      } else if (part.type === "reasoning") {
        if (part.text !== "") yield thoughtChunk(part.text);
      } else {
        const block = blockOf(part);
        if (block !== undefined)
          yield messageChunk(role === "user" ? "user_message_chunk" : "agent_message_chunk", block);
      }
    }
  }
}

/** Results stand in the messages right behind the call's. */
function resultOf(callId: string, history: readonly Message[], index: number): ToolResultPart | undefined {
  for (const { role, parts } of history.slice(index + 1)) {
    if (role === "assistant") return undefined;
    const found = parts.find((part) => part.type === "tool-result" && part.callId === callId);
    if (found !== undefined) return found as ToolResultPart;
  }
  return undefined;
}

/** As it was in the end. No terminal stands in it: the one in which it ran is gone. */
function callUpdate(
  call: ToolCallPart,
  { toolCallId, note, result }: { toolCallId: string; note: CallNote | undefined; result: ToolResultPart | undefined },
): SessionUpdate {
  const hasFailed = result === undefined || result.isError === true;
  const path = note?.locations[0]?.path;
  const input = parseObject(call.arguments) ?? {};
  const changed = hasFailed || path === undefined ? undefined : ownTool(call.name)?.replayed?.(input, path);
  const view = encodeCall({
    toolCallId,
    title: note?.title ?? call.name,
    kind: note?.kind ?? "other",
    status: hasFailed ? "failed" : "completed",
    content: changed ?? resultContent(result),
    locations: note?.locations ?? [],
    rawInput: input,
  });
  return silent({ sessionUpdate: "tool_call", ...view });
}

function resultContent(result: ToolResultPart | undefined): ToolContent[] {
  return (result?.parts ?? []).flatMap((part): ToolContent[] =>
    part.type === "document" ? [] : [{ type: "part", part }],
  );
}

/** Undefined for a part that was not shown. */
function blockOf(part: Exclude<ContentPart, { type: "tool-call" | "reasoning" }>): JsonObject | undefined {
  switch (part.type) {
    case "text":
    case "refusal":
      return part.text === "" ? undefined : textBlock(part.text);
    case "image":
      return imageBlock(part);
    case "audio": {
      if (part.source.kind !== "base64") return undefined;
      const { data, mediaType } = part.source;
      return { type: "audio", data, mimeType: mediaType, mediaType };
    }
    case "document": {
      if (part.source.kind !== "base64") return undefined;
      const { data, mediaType } = part.source;
      const uri = `attachment:${encodeURIComponent(part.title ?? "document")}`;
      return { type: "resource", resource: { uri, mimeType: mediaType, blob: data } };
    }
    default:
      return undefined;
  }
}
