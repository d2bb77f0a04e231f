// A Responses request -> the neutral one. References to earlier answers and items are resolved before (stored-items.ts).

import { isEffort } from "../../generation/reasoning-effort.ts";
import type { GenerationRequest, ReasoningWish, ResponseFormat, Sampling } from "../../generation/request.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { invalidField, missingField } from "../fields.ts";
import { decodeInput } from "./input-items.ts";
import { readResponsesRequest } from "./read-request.ts";
import { decodeToolChoice, decodeTools, joinTools, withOptionalTools } from "./tools.ts";
import { countOf, isGiven, numberOf, objectOf, objectsOf, optionalText, textOf } from "./wire.ts";

export const SEALED_REASONING = "reasoning.encrypted_content";
export const TEXT_LOGPROBS = "message.output_text.logprobs";

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
  const instructions = optionalText(body.instructions);
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
  if (isGiven(body.conversation)) {
    throw invalidField("conversation", "is not supported for this model; send the earlier items in input.");
  }
  if (body.background === true) {
    throw invalidField("background", "is not supported for this model; send the request without it.");
  }
  if (isGiven(body.prompt)) {
    throw invalidField("prompt", "stored prompts are not supported for this model; send instructions and input.");
  }
}

function decodeOptions(body: JsonObject): Partial<GenerationRequest> {
  const toolChoice = decodeToolChoice(body.tool_choice);
  const maxOutputTokens = countOf(body.max_output_tokens);
  const text = objectOf(body.text);
  const responseFormat = decodeFormat(text.format);
  const verbosity = optionalText(text.verbosity);
  const user = optionalText(body.safety_identifier) ?? optionalText(body.user);
  const promptCacheKey = optionalText(body.prompt_cache_key);
  return {
    ...(toolChoice !== undefined && { toolChoice }),
    ...(typeof body.parallel_tool_calls === "boolean" && { parallelToolCalls: body.parallel_tool_calls }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(responseFormat !== undefined && { responseFormat }),
    ...(verbosity !== undefined && { verbosity }),
    ...(user !== undefined && { user }),
    ...(isObject(body.metadata) && { metadata: body.metadata }),
    ...(promptCacheKey !== undefined && { promptCacheKey }),
  };
}

function decodeSampling(body: JsonObject, includes: readonly unknown[]): Sampling {
  const temperature = numberOf(body.temperature);
  const topP = numberOf(body.top_p);
  const topLogprobs = countOf(body.top_logprobs) ?? 0;
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...((topLogprobs > 0 || includes.includes(TEXT_LOGPROBS)) && { logprobs: true }),
    ...(topLogprobs > 0 && { topLogprobs }),
  };
}

function decodeReasoning(body: JsonObject, includes: readonly unknown[]): ReasoningWish {
  const { effort, summary, generate_summary: formerSummary } = objectOf(body.reasoning);
  const visible = decodeVisible(body.include_reasoning, summary ?? formerSummary);
  return {
    ...(isEffort(effort) && { effort }),
    ...(visible !== undefined && { visible }),
    ...(includes.includes(SEALED_REASONING) && { sealed: true }),
  };
}

function decodeVisible(includeReasoning: unknown, summary: unknown): boolean | undefined {
  if (typeof includeReasoning === "boolean") return includeReasoning;
  return isGiven(summary) ? true : undefined;
}

function decodeFormat(format: unknown): ResponseFormat | undefined {
  if (!isGiven(format)) return undefined;
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
  const description = optionalText(format.description);
  return {
    type: "json-schema",
    name: optionalText(format.name) ?? "response",
    ...(description !== undefined && { description }),
    schema: format.schema,
    ...(typeof format.strict === "boolean" && { strict: format.strict }),
  };
}

/** Members that say what is done anyway are no loss. */
function decodeExtensions(body: JsonObject, includes: readonly unknown[]): JsonObject {
  const extensions: JsonObject = {};
  for (const [name, value] of Object.entries(body)) {
    if (KNOWN_MEMBERS.has(name) || !isGiven(value) || isUsual(name, value)) continue;
    extensions[name] = value;
  }
  const others = includes.filter((entry) => !KNOWN_INCLUDES.has(entry)).map(textOf);
  if (others.length > 0) extensions.include = others;
  return extensions;
}

function isUsual(name: string, value: unknown): boolean {
  return USUAL_VALUES[name]?.includes(value) ?? false;
}

const USUAL_VALUES: Readonly<Record<string, readonly unknown[] | undefined>> = {
  background: [false],
  truncation: ["disabled"],
  service_tier: ["auto", "default"],
};
