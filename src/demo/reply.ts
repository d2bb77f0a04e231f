// What the demo model says: who it is, what it was asked, and how to get a real model.

import type { ChatMessage } from "./requests.ts";

const INTRODUCTION = "Hello! I am the demo model built into Signalbox, so I need no network, no key and no GPU.";

const LIMITS = "I cannot think, but everything around me is real: streaming, tool calls, usage and errors.";

const ADVICE =
  "For a real model, set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or start Ollama, LM Studio or vLLM on " +
  "this machine, and start Signalbox again; or list your servers under `backends` in config.yaml.";

/** Longest part of a question that is repeated. */
const ECHO_CHARACTERS = 160;

export function chatReply(messages: readonly ChatMessage[]): string {
  const last = messages.at(-1);
  if (last?.role === "tool" || last?.role === "function") {
    return paragraphs(`${INTRODUCTION} Your tool answered: ${quote(messageText(last))}`, ADVICE);
  }
  const question = messageText(messages.findLast((message) => message.role === "user"));
  return reply(question, "You asked");
}

export function completionReply(prompt: string): string {
  return reply(prompt, "You wrote");
}

function reply(question: string, verb: string): string {
  const asked = question.trim() === "" ? "There was no text to answer." : `${verb}: ${quote(question)}`;
  return paragraphs(`${INTRODUCTION} ${asked}`, LIMITS, ADVICE);
}

/** Told apart, because several equal answers look like a mistake. */
export function numbered(text: string, index: number, total: number): string {
  return total === 1 ? text : `(Answer ${index + 1} of ${total}) ${text}`;
}

/** The text of a message; parts of other kinds have none. */
export function messageText(message: ChatMessage | undefined): string {
  return textsOf(message).join("\n");
}

/** The last part of it that is text: agents put what is their own in front of the user's words. */
export function lastTextOf(message: ChatMessage | undefined): string {
  return textsOf(message).at(-1) ?? "";
}

function textsOf(message: ChatMessage | undefined): string[] {
  const content = message?.content ?? "";
  if (typeof content === "string") return [content];
  return content.map((part) => part.text).filter((text) => typeof text === "string");
}

function quote(text: string): string {
  const characters = [
    ...text
      .trim()
      .slice(0, 4 * ECHO_CHARACTERS)
      .replaceAll(/\s+/g, " "),
  ];
  const shown = characters.slice(0, ECHO_CHARACTERS).join("");
  return `"${shown}${characters.length > ECHO_CHARACTERS ? "…" : ""}"`;
}

function paragraphs(...texts: string[]): string {
  return texts.join("\n\n");
}
