// What families of models take of a Converse request, as data (state of November 2026). Sources: the user guides of Amazon
// Bedrock ("Supported models and model features", "Prompt caching", "Get validated JSON results from models") and of
// Amazon Nova, and the service model in @aws-sdk/client-bedrock-runtime 3.1164.

import type { Effort } from "../../generation/request.ts";
import type { JsonObject } from "../../lib/json.ts";

/** How a family is told how much it should think. */
interface ThinkingRules {
  efforts: readonly Effort[];
  /** Members of additionalModelRequestFields; undefined: nothing has to be said. */
  fields(effort: Effort): JsonObject | undefined;
  /** Efforts with which the family takes no other inference parameter. */
  alone?: readonly Effort[];
}

export interface ModelRules {
  /** Undefined: the family does not think, or always as much as it wants. */
  thinking?: ThinkingRules;
  /** Members of additionalModelRequestFields; undefined: there is no top_k. */
  topK?: (value: number) => JsonObject;
  /** Places of cache points. */
  cachePoints: readonly ("system" | "messages" | "tools")[];
  /** Which choices of tools can be forced besides "auto". */
  toolChoice: readonly ("any" | "tool")[];
  /** outputConfig.textFormat, and strict tools. */
  structuredOutput: boolean;
  /** A result of a tool may have a status, pictures and documents. */
  richResults: boolean;
  /** The last message may be the beginning of the answer. */
  prefill: boolean;
}

const UNKNOWN: ModelRules = {
  cachePoints: [],
  toolChoice: [],
  structuredOutput: false,
  richResults: false,
  prefill: false,
};

/** Open-weight models whose answers Bedrock itself constrains. */
const OPEN: ModelRules = { ...UNKNOWN, structuredOutput: true };

const NOVA: ModelRules = {
  topK: (topK) => ({ inferenceConfig: { topK } }),
  cachePoints: ["system", "messages"],
  toolChoice: ["any", "tool"],
  structuredOutput: false,
  richResults: true,
  prefill: true,
};

const UP_TO_HIGH: readonly Effort[] = ["low", "medium", "high"];

/** Extended thinking is off unless it is asked for (Amazon Nova 2 user guide, "Extended thinking"). */
const NOVA_2: ModelRules = {
  ...NOVA,
  thinking: {
    efforts: ["none", ...UP_TO_HIGH],
    fields: (effort) =>
      effort === "none" ? undefined : { reasoningConfig: { type: "enabled", maxReasoningEffort: effort } },
    alone: ["high"],
  },
};

const GPT_OSS: ModelRules = {
  ...OPEN,
  thinking: { efforts: UP_TO_HIGH, fields: (effort) => ({ reasoning_effort: effort }) },
};

/** First match counts. Names are those of models, of inference profiles, and those that operators give them. */
const FAMILIES: readonly (readonly [RegExp, ModelRules])[] = [
  [/nova-2/, NOVA_2],
  [/nova-(?:micro|lite|pro|premier)/, NOVA],
  [/gpt-oss/, GPT_OSS],
  [/mistral-large|pixtral-large/, { ...OPEN, structuredOutput: false, toolChoice: ["any"] }],
  [/magistral|ministral|voxtral|qwen3|deepseek[.-]v3|gemma-3|minimax|kimi|nemotron/, OPEN],
  [/command-r/, { ...UNKNOWN, topK: (k) => ({ k }) }],
];

/** Models of unknown name get what every one of them takes. */
export function rulesOf(model: string): ModelRules {
  const name = model.toLowerCase();
  return FAMILIES.find(([pattern]) => pattern.test(name))?.[1] ?? UNKNOWN;
}
