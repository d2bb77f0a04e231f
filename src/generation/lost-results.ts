// Calls whose results a client does not send, and results whose calls it does not, for formats whose services refuse
// such a conversation: an agent was stopped, its user went on without it, or the history was cut off.

import type { ContentPart, Message, ToolResultPart } from "./content.ts";
import type { DropList } from "./dropped.ts";

export const LOST_RESULT = "No result: the call was not carried out.";

/** The messages with a result for every call, and a call for every result. */
export function pairedResults(messages: readonly Message[], dropped: DropList): readonly Message[] {
  return withLostResults(withoutOrphans(messages, dropped), dropped);
}

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

/** The messages with the results of calls that are not in the turn before told as text: services refuse them, too. */
function withoutOrphans(messages: readonly Message[], dropped: DropList): readonly Message[] {
  let isChanged = false;
  let open: readonly string[] = [];
  const told = messages.map((message, index): Message => {
    const { role, parts } = message;
    if (role === "assistant") {
      open = [...(messages[index - 1]?.role === "assistant" ? open : []), ...callIds(parts)];
      return message;
    }
    if (!parts.some((part) => isOrphan(part, open))) return message;
    isChanged = true;
    return { ...message, parts: parts.flatMap((part) => (isOrphan(part, open) ? asText(part) : [part])) };
  });
  if (!isChanged) return messages;
  dropped.add("tool result", "its call is not in the turn before; it is told as text");
  return told;
}

function isOrphan(part: ContentPart, open: readonly string[]): part is ToolResultPart {
  return part.type === "tool-result" && !open.includes(part.callId);
}

function asText({ callId, isError, parts }: ToolResultPart): ContentPart[] {
  return [{ type: "text", text: `${isError === true ? "Error" : "Result"} of the tool call ${callId}:` }, ...parts];
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
  const calls = callIds(parts);
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

function callIds(parts: readonly ContentPart[]): string[] {
  return parts.flatMap((part) => (part.type === "tool-call" && part.serverSide !== true ? [part.id] : []));
}

function resultIds(parts: readonly ContentPart[]): string[] {
  return parts.flatMap((part) => (part.type === "tool-result" ? [part.callId] : []));
}
