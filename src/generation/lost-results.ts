// Calls whose results a client does not send, for formats whose services refuse such a conversation: an agent was
// stopped, or its user went on without it.

import type { ContentPart, Message, ToolResultPart } from "./content.ts";
import type { DropList } from "./dropped.ts";

const LOST_RESULT = "No result: the call was not carried out.";

/** The messages with an error as the result of each such call, right behind the turn that made it. */
export function withLostResults(messages: readonly Message[], dropped: DropList): readonly Message[] {
  const complete: Message[] = [];
  for (let start = 0; start < messages.length; ) {
    const end = endOfTurn(messages, start);
    complete.push(...messages.slice(start, end));
    const lost = lostCalls(messages, start, end);
    if (lost.length > 0) complete.push({ role: "user", parts: lost });
    start = end;
  }
  if (complete.length === messages.length) return messages;
  dropped.add("tool_calls", "calls without a result were given an error as their result");
  return complete;
}

/** Behind the neighbours of the message's own role. */
function endOfTurn(messages: readonly Message[], start: number): number {
  let end = start + 1;
  while (end < messages.length && messages[end]?.role === messages[start]?.role) end++;
  return end;
}

function lostCalls(messages: readonly Message[], start: number, end: number): ToolResultPart[] {
  if (messages[start]?.role !== "assistant") return [];
  const parts = messages.slice(start, end).flatMap((message) => message.parts);
  const calls = parts.flatMap((part) => (part.type === "tool-call" && part.serverSide !== true ? [part.id] : []));
  if (calls.length === 0) return [];
  const answered = new Set(resultIds(parts));
  for (let next = end; next < messages.length && messages[next]?.role !== "assistant"; next++) {
    for (const id of resultIds(messages[next]?.parts ?? [])) answered.add(id);
  }
  const lost = new Set(calls.filter((id) => !answered.has(id)));
  return [...lost].map((callId) => ({
    type: "tool-result",
    callId,
    parts: [{ type: "text", text: LOST_RESULT }],
    isError: true,
  }));
}

function resultIds(parts: readonly ContentPart[]): string[] {
  return parts.flatMap((part) => (part.type === "tool-result" ? [part.callId] : []));
}
