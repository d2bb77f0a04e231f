// generateContent requests and answers that pass.

import type { JsonObject } from "../../lib/json.ts";
import { isObject, isPresent } from "../../lib/json.ts";
import { mergeSystem, type PromptMerge } from "../inject-prompt.ts";
import type { PassThrough } from "../protocol.ts";
import { adaptBody, hasCallIds } from "./adapt-body.ts";
import { ContentWatch } from "./content-watch.ts";
import { listOf } from "./members.ts";
import { readPrompt } from "./read-prompt.ts";
import { decodeUsage } from "./usage.ts";
import { wholeAsEvent } from "./whole-as-event.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export const contentPassThrough: PassThrough = {
  // Vertex knows calls by their names and their order alone, and refuses ids of them.
  mustTranslate: (body, _splitsThoughts, _fetchesNothing, { isCloud }) => isCloud === true && hasCallIds(body),
  adapt(body, target) {
    const members = adaptBody(body, target);
    return members && { members };
  },
  injectPrompt(body, prompt, merge) {
    const name = isPresent(body.systemInstruction) || !isPresent(body.system_instruction) ? CAMEL : SNAKE;
    return { [name]: mergeInstruction(body[name], prompt, merge) };
  },
  readPrompt,
  usageOf: ({ usageMetadata }) => decodeUsage(usageMetadata),
  usageMember: "usageMetadata",
  preamble: new Set(["ping"]),
  asEvents: (answer) => encoder.encode(wholeAsEvent(decoder.decode(answer))),
  watch: (options) => new ContentWatch(options),
};

const CAMEL = "systemInstruction";
const SNAKE = "system_instruction";

/** The prompt joins the first text, or the last one. */
function mergeInstruction(instruction: unknown, prompt: string, merge: PromptMerge): JsonObject {
  if (!isObject(instruction)) return { parts: [{ text: mergeSystem(instruction, prompt, merge) }] };
  const parts = listOf(isPresent(instruction.parts) ? instruction.parts : instruction);
  if (merge.strategy === "replace") return { parts: [{ text: prompt }] };
  const isText = (part: unknown) => isObject(part) && typeof part.text === "string" && part.text !== "";
  const place = merge.strategy === "append" ? parts.findLastIndex(isText) : parts.findIndex(isText);
  if (place < 0) return { parts: [...parts, { text: prompt }] };
  const merged = parts.map((part, index) =>
    index === place ? { ...(part as JsonObject), text: mergeSystem((part as JsonObject).text, prompt, merge) } : part,
  );
  return { ...(isPresent(instruction.role) && { role: instruction.role }), parts: merged };
}
