// A Responses request -> the neutral one. References to earlier answers and items are resolved before (stored-items.ts).

import { isEffort } from "../../generation/reasoning-effort.ts";
import type { GenerationRequest, ReasoningWish, ResponseFormat, Sampling } from "../../generation/request.ts";
import { compact, isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import { extensionsOf } from "../decode-request.ts";
import { invalidField, missingField } from "../fields.ts";
import {
  nonEmptyText,
  numberOf,
  objectOf,
  objectsOf,
  optionalBoolean,
  optionalObject,
  textOf,
  wholeNumberOf,
} from "../reading.ts";
import { decodeInput } from "./input-items.ts";
import { readResponsesRequest } from "./read-request.ts";
import { decodeToolChoice, decodeTools, joinTools, withOptionalTools } from "./tools.ts";

export const SEALED_REASONING = "reasoning.encrypted_content";
const TEXT_LOGPROBS = "message.output_text.logprobs";

/** Members that the neutral request has a place for, or that the gateway itself has dealt with. */
const KNOWN_MEMBERS: ReadonlySet<string> = new Set([
  "model",
  "input",
  "instructions",
  "max_output_tokens",
  "temperature",
  "top_p",
  "top_logprobs",
  "reasoning",
  "include_reasoning",
  "text",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "stream",
  "stream_options",
  "metadata",
  "user",
  "safety_identifier",
  "prompt_cache_key",
  "include",
  "store",
  "previous_response_id",
]);

/** What an include asks for that the neutral request says, or that answers of the gateway have anyway. */
const KNOWN_INCLUDES: ReadonlySet<unknown> = new Set([
  SEALED_REASONING,
  TEXT_LOGPROBS,
  "web_search_call.action.sources",
  "message.input_image.image_url",
]);

export function decodeRequest(body: JsonObject): GenerationRequest {
  const { model, stream } = readResponsesRequest(body);
  refuseNativeOnly(body);
  const { system, messages, tools } = decodeInput(body.input);
  const instructions = nonEmptyText(body.instructions);
  if (instructions !== undefined) system.unshift({ type: "text", text: instructions });
  const includes = Array.isArray(body.include) ? body.include : [];
  const options = decodeOptions(body);
  return {
    model,
    system,
    messages,
    tools: withOptionalTools(joinTools(decodeTools(objectsOf(body.tools), "tools"), tools), options.toolChoice),
    sampling: decodeSampling(body, includes),
    reasoning: decodeReasoning(body, includes),
    ...options,
    stream,
    origin: { protocol: "responses", body },
    extensions: decodeExtensions(body, includes),
  };
}

/** What only a service that keeps state can do; left out, the answer would be to something else. */
function refuseNativeOnly(body: JsonObject): void {
  if (isPresent(body.conversation)) {
    throw invalidField("conversation", "is not supported for this model; send the earlier items in input.");
  }
  if (body.background === true) {
    throw invalidField("background", "is not supported for this model; send the request without it.");
  }
  if (isPresent(body.prompt)) {
    throw invalidField("prompt", "stored prompts are not supported for this model; send instructions and input.");
  }
}

function decodeOptions(body: JsonObject) {
  const { format, verbosity } = objectOf(body.text);
  return compact({
    toolChoice: decodeToolChoice(body.tool_choice),
    parallelToolCalls: optionalBoolean(body.parallel_tool_calls),
    maxOutputTokens: wholeNumberOf(body.max_output_tokens),
    responseFormat: decodeFormat(format),
    verbosity: nonEmptyText(verbosity),
    user: nonEmptyText(body.safety_identifier) ?? nonEmptyText(body.user),
    metadata: optionalObject(body.metadata),
    promptCacheKey: nonEmptyText(body.prompt_cache_key),
  });
}

function decodeSampling(body: JsonObject, includes: readonly unknown[]): Sampling {
  const topLogprobs = wholeNumberOf(body.top_logprobs) || undefined;
  return compact({
    temperature: numberOf(body.temperature),
    topP: numberOf(body.top_p),
    logprobs: topLogprobs !== undefined || includes.includes(TEXT_LOGPROBS) || undefined,
    topLogprobs,
  });
}

function decodeReasoning(body: JsonObject, includes: readonly unknown[]): ReasoningWish {
  const { effort, summary, generate_summary: formerSummary } = objectOf(body.reasoning);
  return compact({
    effort: isEffort(effort) ? effort : undefined,
    visible: optionalBoolean(body.include_reasoning) ?? (isPresent(summary ?? formerSummary) || undefined),
    sealed: includes.includes(SEALED_REASONING) || undefined,
  });
}

function decodeFormat(format: unknown): ResponseFormat | undefined {
  if (!isPresent(format)) return undefined;
  if (!isObject(format)) throw invalidField("text.format", "expected an object.");
  switch (format.type) {
    case "text":
      return { type: "text" };
    case "json_object":
      return { type: "json" };
    case "json_schema":
      return decodeSchema(format);
    default:
      throw invalidField("text.format.type", 'expected "text", "json_object" or "json_schema".');
  }
}

/** Flat, where chat completions nest these members in json_schema. */
function decodeSchema(format: JsonObject): ResponseFormat {
  if (!isObject(format.schema)) {
    throw missingField("text.format.schema", "a JSON Schema, beside type and name.");
  }
  return compact({
    type: "json-schema",
    name: nonEmptyText(format.name) ?? "response",
    description: nonEmptyText(format.description),
    schema: format.schema,
    strict: optionalBoolean(format.strict),
  });
}

/** Members that say what is done anyway are no loss. */
function decodeExtensions(body: JsonObject, includes: readonly unknown[]): JsonObject {
  const extensions = extensionsOf(body, KNOWN_MEMBERS);
  for (const name in USUAL_VALUES) if (USUAL_VALUES[name]?.includes(extensions[name])) delete extensions[name];
  const others = includes.filter((entry) => !KNOWN_INCLUDES.has(entry)).map(textOf);
  if (others.length > 0) extensions.include = others;
  return extensions;
}

const USUAL_VALUES: Readonly<Record<string, readonly unknown[] | undefined>> = {
  background: [false],
  truncation: ["disabled"],
  service_tier: ["auto", "default"],
};
