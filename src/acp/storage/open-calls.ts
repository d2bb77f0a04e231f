// Calls without results: an agent that was killed between a call and its result leaves one at the end of its file. Models
// refuse such a conversation for good.

import type { Message, ToolCallPart } from "../../generation/content.ts";

/** Replaces the result for the model: how far the call has come is not known. */
const LOST = "The agent ended before the result of this call was written down; the call may have been carried out.";

/** Each call has a result right behind it. The results of a message stand in one line of the file: all are there, or none. */
export function withResults(messages: readonly Message[]): Message[] {
  return messages.flatMap((message, index) => {
    const calls = message.role === "assistant" ? message.parts.filter(isOwnCall) : [];
    const hasResults = messages[index + 1]?.parts.some(({ type }) => type === "tool-result") === true;
    return calls.length === 0 || hasResults ? message : [message, lostResults(calls)];
  });
}

function isOwnCall(part: Message["parts"][number]): part is ToolCallPart {
  return part.type === "tool-call" && part.serverSide !== true;
}

function lostResults(calls: readonly ToolCallPart[]): Message {
  return {
    role: "user",
    parts: calls.map(({ id, name }) => ({
      type: "tool-result",
      callId: id,
      name,
      parts: [{ type: "text", text: LOST }],
      isError: true,
    })),
  };
}
