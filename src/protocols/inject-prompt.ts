// How the gateway's prompt and the instructions of a request become one: what the formats share.

import { isObject, type JsonObject } from "../lib/json.ts";

export interface PromptMerge {
  strategy: "prepend" | "append" | "replace";
  separator: string;
}

export function mergeSystem(existing: unknown, prompt: string, { strategy, separator }: PromptMerge): string {
  if (typeof existing !== "string" || existing === "" || strategy === "replace") return prompt;
  return strategy === "prepend" ? prompt + separator + existing : existing + separator + prompt;
}

/** A text, or blocks of it. */
export function mergeContent(content: unknown, prompt: string, merge: PromptMerge): string | unknown[] {
  return Array.isArray(content) ? mergeBlocks(content, prompt, merge) : mergeSystem(content, prompt, merge);
}

/** The text is merged into a block that is there, so that marks for the prompt cache stay where they are. */
function mergeBlocks(blocks: readonly unknown[], prompt: string, merge: PromptMerge): unknown[] {
  const { strategy } = merge;
  const texts = blocks.filter(isTextBlock);
  const block = strategy === "append" ? texts.at(-1) : texts[0];
  if (strategy === "replace") {
    const mark = texts.findLast(({ cache_control }) => cache_control !== undefined)?.cache_control;
    return [{ type: "text", text: prompt, ...(mark !== undefined && { cache_control: mark }) }];
  }
  if (block === undefined) return [...blocks, { type: "text", text: prompt }];
  const text = mergeSystem(block.text, prompt, merge);
  return blocks.map((each) => (each === block ? { ...block, text } : each));
}

function isTextBlock(block: unknown): block is JsonObject & { text: string } {
  return isObject(block) && typeof block.text === "string";
}
