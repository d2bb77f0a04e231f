// What encoders of requests say in words where their format has no other place for it, and what they refuse alike.

import type { GatewayError } from "../errors/gateway-error.ts";
import type { SearchResultPart } from "../generation/content.ts";
import type { DropList } from "../generation/dropped.ts";
import type { Sampling } from "../generation/request.ts";
import type { JsonObject } from "../lib/json.ts";
import { invalidField } from "./fields.ts";

/** For services with which the user has to begin. */
export const CONVERSATION_START = "(The conversation begins with the assistant.)";

/** @param schema - undefined: any object */
export function askForJson(schema: JsonObject | undefined): string {
  const form =
    schema === undefined
      ? "It is one JSON object."
      : `It is valid against this JSON Schema:\n${JSON.stringify(schema)}`;
  return `Answer with JSON only: no words before or after it, and no code fence. ${form}`;
}

/** The outcome of a search that another backend, or the gateway, has made. */
export function searchText({ results, errorCode }: SearchResultPart): string {
  if (errorCode !== undefined) return `The web search failed: ${errorCode}.`;
  if (results.length === 0) return "The web search found nothing.";
  const lines = results.map(
    ({ title, url, snippet }) => `- ${title} (${url})${snippet === undefined ? "" : `: ${snippet}`}`,
  );
  return `Results of a web search:\n${lines.join("\n")}`;
}

export function refuseChoices({ choices }: Sampling): void {
  if (choices !== undefined && choices > 1) {
    throw invalidField("n", "this model's backend gives one choice per request.");
  }
}

/** The refusal of a part of a message. Its place in the client's body is not known here, its feature is. */
export function refusedPart(feature: string, message: string): GatewayError {
  return invalidField("messages", `${feature}: ${message}`);
}

export function heldElsewhere(): GatewayError {
  return refusedPart("file_id", "the file is held by another vendor; send its content instead.");
}

/** Members of a neutral request that not every format has, in the client's spelling where all formats agree on one. */
const WORDS = {
  frequencyPenalty: "frequency_penalty",
  presencePenalty: "presence_penalty",
  topK: "top_k",
  seed: "seed",
  stop: "stop",
  logprobs: "logprobs",
  topLogprobs: "logprobs",
  logitBias: "logit_bias",
  verbosity: "verbosity",
  user: "user",
  metadata: "metadata",
  promptCacheKey: "prompt_cache_key",
} as const;

/** Lists those of the members that the request has. */
export function listUnsupported<Member extends keyof typeof WORDS>(
  asked: { [Name in Member]?: unknown },
  members: readonly Member[],
  dropped: DropList,
): void {
  for (const member of members) {
    if (asked[member] !== undefined && asked[member] !== false) dropped.add(WORDS[member]);
  }
}
