// Puts the gateway's prompt into a request: into the body of a format that goes on as it is, or into the neutral form.

import type { ProtocolName, TextPart } from "../generation/content.ts";
import type { GenerationRequest } from "../generation/request.ts";
import { isObject, type JsonObject } from "../lib/json.ts";
import { type MergeStrategy, mergeSystem, type PromptMerge } from "./merge.ts";

/** The top-level members that must be other ones; undefined: the body has no place for a prompt. */
export function injectPrompt(
  protocol: ProtocolName,
  body: JsonObject,
  prompt: string,
  strategy: MergeStrategy,
  separator: string,
): JsonObject | undefined {
  return INJECTIONS[protocol]?.(body, prompt, { strategy, separator });
}

type Injection = (body: JsonObject, prompt: string, merge: PromptMerge) => JsonObject | undefined;

const INJECTIONS: Partial<Record<ProtocolName, Injection>> = {
  chat: (body, prompt, merge) => {
    if (!Array.isArray(body.messages)) return undefined;
    return { messages: injectIntoMessages(body.messages, prompt, merge) };
  },
  responses: ({ instructions }, prompt, { strategy, separator }) => ({
    instructions: mergeSystem(typeof instructions === "string" ? instructions : undefined, prompt, strategy, separator),
  }),
  messages: ({ system }, prompt, merge) => {
    if (Array.isArray(system)) return { system: injectIntoBlocks(system, prompt, merge) };
    const existing = typeof system === "string" ? system : undefined;
    return { system: mergeSystem(existing, prompt, merge.strategy, merge.separator) };
  },
  completions: ({ prompt: text }, prompt, { separator }) => {
    const injected = injectIntoText(text, prompt, separator);
    return injected === undefined ? undefined : { prompt: injected };
  },
};

/** Instructions come first; later ones belong to their place in the conversation and stay. */
function injectIntoMessages(messages: readonly unknown[], prompt: string, merge: PromptMerge): unknown[] {
  const end = messages.findIndex((message) => !isInstruction(message));
  const leading = messages.slice(0, end < 0 ? messages.length : end) as JsonObject[];
  const rest = messages.slice(leading.length);
  const first = leading[0];
  if (first === undefined) return [{ role: "system", content: prompt }, ...rest];
  if (merge.strategy === "replace") return [{ ...first, content: prompt }, ...rest];
  const place = merge.strategy === "prepend" ? 0 : leading.length - 1;
  const changed = leading.map((message, index) =>
    index === place ? { ...message, content: injectIntoContent(message.content, prompt, merge) } : message,
  );
  return [...changed, ...rest];
}

function isInstruction(message: unknown): message is JsonObject {
  return isObject(message) && (message.role === "system" || message.role === "developer");
}

function injectIntoContent(content: unknown, prompt: string, merge: PromptMerge): unknown {
  if (Array.isArray(content)) return injectIntoBlocks(content, prompt, merge);
  return mergeSystem(typeof content === "string" ? content : undefined, prompt, merge.strategy, merge.separator);
}

/** The text is merged into a block that is there, so that marks for the prompt cache stay where they are. */
function injectIntoBlocks(blocks: readonly unknown[], prompt: string, { strategy, separator }: PromptMerge): unknown[] {
  const texts = blocks.filter(isTextBlock);
  const block = strategy === "append" ? texts.at(-1) : texts[0];
  if (strategy === "replace") {
    const mark = texts.findLast(({ cache_control }) => cache_control !== undefined)?.cache_control;
    return [{ type: "text", text: prompt, ...(mark !== undefined && { cache_control: mark }) }];
  }
  if (block === undefined) return [...blocks, { type: "text", text: prompt }];
  const text = mergeSystem(block.text, prompt, strategy, separator);
  return blocks.map((each) => (each === block ? { ...block, text } : each));
}

function isTextBlock(block: unknown): block is JsonObject & { text: string } {
  return isObject(block) && typeof block.text === "string";
}

/** A text completion has no instructions: the prompt stands before the text, whatever the strategy. */
function injectIntoText(text: unknown, prompt: string, separator: string): unknown {
  if (typeof text === "string") return mergeSystem(text, prompt, "prepend", separator);
  const isTexts = Array.isArray(text) && text.length > 0 && text.every((each) => typeof each === "string");
  // Lists of token numbers are in the model's own alphabet.
  return isTexts ? text.map((each: string) => mergeSystem(each, prompt, "prepend", separator)) : undefined;
}

export function injectIntoRequest(
  request: GenerationRequest,
  prompt: string,
  strategy: MergeStrategy,
  separator: string,
): GenerationRequest {
  const { system } = request;
  const place = strategy === "append" ? system.length - 1 : 0;
  const part = system[place];
  if (part === undefined) return { ...request, system: [{ type: "text", text: prompt }] };
  const merged: TextPart = { ...part, text: mergeSystem(part.text, prompt, strategy, separator) };
  if (strategy !== "replace") return { ...request, system: system.with(place, merged) };
  const cache = system.findLast((each) => each.cache !== undefined)?.cache;
  return { ...request, system: [{ type: "text", text: prompt, ...(cache && { cache }) }] };
}
