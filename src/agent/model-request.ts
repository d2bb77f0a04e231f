// What a model is asked in a turn: the neutral request.

import type { ContentPart, Message, TextPart, ToolResultPart } from "../generation/content.ts";
import { type GenerationRequest, NO_CLIENT, type ReasoningWish } from "../generation/request.ts";
import type { FunctionTool } from "../generation/tools.ts";
import { compact } from "../lib/json.ts";
import type { SessionChoices } from "./agent.ts";
import type { AgentTool } from "./tool.ts";

interface AskedModel {
  choices: SessionChoices;
  instructions: string;
  tools: readonly AgentTool[];
  promptCacheKey: string | undefined;
}

/** The request without the conversation. */
export function requestFrame({ choices, instructions, tools, promptCacheKey }: AskedModel): GenerationRequest {
  const { model, effort, temperature, maxOutputTokens } = choices;
  return {
    model,
    system: [{ type: "text", text: instructions, cache: {} }],
    messages: [],
    tools: tools.map(functionTool),
    sampling: compact({ temperature }),
    reasoning: reasoningWish(effort),
    stream: true,
    ...compact({ maxOutputTokens, promptCacheKey }),
    origin: NO_CLIENT,
    extensions: {},
  };
}

/** @param readsImages - false: the model gets images in words */
export function withMessages(
  frame: GenerationRequest,
  messages: readonly Message[],
  readsImages: boolean,
): GenerationRequest {
  return { ...frame, messages: withCacheHints(readsImages ? messages : messages.map(inWords)) };
}

function functionTool({ name, description, parameters }: AgentTool): FunctionTool {
  return { kind: "function", name, description, parameters };
}

/** Without an effort nothing is said: models that cannot think refuse any other wish. */
function reasoningWish(effort: SessionChoices["effort"]): ReasoningWish {
  if (effort === undefined) return {};
  return effort === "none" ? { effort } : { effort, visible: true };
}

// ---- Prompt caches

/** The end of what is sent, and of what was sent before: caches look for a beginning that ends at a hint. */
const HINTS = 2;

function withCacheHints(messages: readonly Message[]): Message[] {
  const hinted = [...messages];
  let left = HINTS;
  for (let index = hinted.length - 1; index >= 0 && left > 0; index--) {
    const message = hinted[index] as Message;
    if (message.role !== "user") continue;
    hinted[index] = { ...message, parts: withHint(message.parts) };
    left--;
  }
  return hinted;
}

function withHint(parts: readonly ContentPart[]): ContentPart[] {
  const last = parts.at(-1);
  const takesHint =
    last?.type === "text" || last?.type === "image" || last?.type === "document" || last?.type === "tool-result";
  return takesHint ? [...parts.slice(0, -1), { ...last, cache: {} }] : [...parts];
}

// ---- Models that read text only

const IMAGE_IN_WORDS = "[An image, which this model cannot read.]";

function inWords(message: Message): Message {
  if (!message.parts.some((part) => part.type === "image" || part.type === "tool-result")) return message;
  return {
    ...message,
    parts: message.parts.map((part) => (part.type === "tool-result" ? resultInWords(part) : wordFor(part))),
  };
}

function resultInWords(result: ToolResultPart): ToolResultPart {
  if (!result.parts.some((part) => part.type === "image")) return result;
  return { ...result, parts: result.parts.map(wordFor) };
}

function wordFor<Part extends ContentPart>(part: Part): Part | TextPart {
  return part.type === "image" ? { type: "text", text: IMAGE_IN_WORDS } : part;
}
