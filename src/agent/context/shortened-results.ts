// Tool results in fewer words, for a conversation that has become too long for its model. What is made of a result depends
// on it alone, so that the beginning of a conversation stays the same from one call of the model to the next.

import type { Message, ToolResultPart } from "../../generation/content.ts";
import { shortenMiddle } from "../shorten-text.ts";

/** UTF-16 code units of an old result. */
export const OLD_RESULT_LENGTH = 600;

/** A message whose results have had their time. */
export function withOldResults(message: Message): Message {
  return withResultsOf(message, OLD_RESULT_LENGTH);
}

/** The results of the message, each of them at most so many UTF-16 code units long. */
export function withResultsOf(message: Message, length: number): Message {
  if (!message.parts.some((part) => part.type === "tool-result")) return message;
  const parts = message.parts.map((part) => (part.type === "tool-result" ? shortened(part, length) : part));
  return { ...message, parts };
}

export function isResults({ role, parts }: Message): boolean {
  return role === "user" && parts.some((part) => part.type === "tool-result");
}

function shortened(result: ToolResultPart, length: number): ToolResultPart {
  const texts: string[] = [];
  for (const part of result.parts) texts.push(part.type === "text" ? part.text : `[${part.type} left out]`);
  const text = texts.join("\n");
  const isShort = text.length <= length;
  if (isShort && result.parts.every((part) => part.type === "text")) return result;
  return { ...result, parts: [{ type: "text", text: shortenMiddle(text, length, noteOf) }] };
}

function noteOf(leftOut: number): string {
  return `[... ${leftOut} characters were left out to save room; call the tool again if you need them ...]`;
}
