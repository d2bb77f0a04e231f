// A chat client's request -> the neutral request.

import {
  EFFORTS,
  type Effort,
  type GenerationRequest,
  type ReasoningWish,
  type ResponseFormat,
  type Sampling,
} from "../../generation/request.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { decodeSampling, extensionsOf } from "../decode-request.ts";
import { describe, invalidField, missingField } from "../fields.ts";
import { decodeMessages } from "./message-decoder.ts";
import { readChatRequest } from "./request.ts";
import { decodeToolChoice, decodeTools, usesFunctions } from "./tools.ts";
import { finiteNumber, nonEmptyString, unsupported } from "./wire.ts";

/** Members that the neutral request has a field for; all others are extensions. */
const KNOWN: ReadonlySet<string> = new Set([
  ...["model", "messages", "stream", "stream_options", "tools", "tool_choice", "functions", "function_call"],
  ...["parallel_tool_calls", "max_tokens", "max_completion_tokens", "reasoning_effort", "reasoning", "verbosity"],
  ...["temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed", "stop", "n", "logprobs"],
  ...["top_logprobs", "logit_bias", "response_format", "user", "safety_identifier", "metadata", "prompt_cache_key"],
  ...["web_search_options", "modalities"],
]);

export function decodeRequest(body: JsonObject): GenerationRequest {
  const { model, stream } = readChatRequest(body);
  const { system, messages } = decodeMessages(body.messages as JsonObject[]);
  checkModalities(body.modalities);
  const request: GenerationRequest = {
    model,
    system,
    messages,
    tools: decodeTools(body),
    sampling: sampling(body),
    reasoning: decodeReasoningWish(body),
    stream,
    origin: { protocol: "chat", body },
    extensions: extensionsOf(body, KNOWN),
  };
  const toolChoice = decodeToolChoice(body);
  if (toolChoice !== undefined) request.toolChoice = toolChoice;
  if (typeof body.parallel_tool_calls === "boolean") request.parallelToolCalls = body.parallel_tool_calls;
  else if (usesFunctions(body)) request.parallelToolCalls = false; // the deprecated form holds one call
  const maxOutputTokens = finiteNumber(body.max_completion_tokens) ?? finiteNumber(body.max_tokens);
  if (maxOutputTokens !== undefined) request.maxOutputTokens = maxOutputTokens;
  const responseFormat = decodeResponseFormat(body.response_format);
  if (responseFormat !== undefined) request.responseFormat = responseFormat;
  const verbosity = nonEmptyString(body.verbosity);
  if (verbosity !== undefined) request.verbosity = verbosity;
  const user = nonEmptyString(body.safety_identifier) ?? nonEmptyString(body.user);
  if (user !== undefined) request.user = user;
  if (isObject(body.metadata)) request.metadata = body.metadata;
  const promptCacheKey = nonEmptyString(body.prompt_cache_key);
  if (promptCacheKey !== undefined) request.promptCacheKey = promptCacheKey;
  return request;
}

/** An answer in audio is not an answer in text: nothing but a chat backend can give it. */
function checkModalities(modalities: unknown): void {
  if (!Array.isArray(modalities) || modalities.every((modality) => modality === "text")) return;
  throw unsupported("modalities", "only backends that speak chat completions can answer in anything but text.");
}

function sampling(body: JsonObject): Sampling {
  const decoded = decodeSampling(body, body.top_logprobs);
  return body.logprobs === true ? { ...decoded, logprobs: true } : decoded;
}

// ---- Reasoning

function decodeReasoningWish(body: JsonObject): ReasoningWish {
  const nested = isObject(body.reasoning) ? body.reasoning : {};
  const wish: ReasoningWish = {};
  const effort =
    decodeEffort(body.reasoning_effort, "reasoning_effort") ?? decodeEffort(nested.effort, "reasoning.effort");
  if (effort !== undefined) wish.effort = effort;
  // The other members of `reasoning` are the ones that routers in front of many vendors know.
  const budgetTokens = finiteNumber(nested.max_tokens);
  if (budgetTokens !== undefined) wish.budgetTokens = budgetTokens;
  if (typeof nested.enabled === "boolean") wish.enabled = nested.enabled;
  if (typeof nested.exclude === "boolean") wish.visible = !nested.exclude;
  return wish;
}

function decodeEffort(value: unknown, field: string): Effort | undefined {
  if (typeof value !== "string") return undefined;
  const effort = EFFORTS.find((known) => known === value);
  if (effort === undefined) throw invalidField(field, `expected one of ${EFFORTS.join(", ")}.`);
  return effort;
}

// ---- Response format

function decodeResponseFormat(value: unknown): ResponseFormat | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw invalidField("response_format", `expected an object, got ${describe(value)}.`);
  switch (value.type) {
    case "text":
      return { type: "text" };
    case "json_object":
      // llama.cpp takes a schema here as well.
      return isObject(value.schema)
        ? { type: "json-schema", name: "response", schema: value.schema }
        : { type: "json" };
    case "json_schema":
      return decodeJsonSchema(value.json_schema);
    default:
      throw invalidField("response_format.type", "expected text, json_object or json_schema.");
  }
}

function decodeJsonSchema(value: unknown): ResponseFormat {
  const path = "response_format.json_schema";
  if (!isObject(value)) throw missingField(path, "an object with name and schema.");
  const { name, description, schema, strict } = value;
  if (schema !== undefined && schema !== null && !isObject(schema)) {
    throw invalidField(`${path}.schema`, `expected a JSON Schema object, got ${describe(schema)}.`);
  }
  const format: ResponseFormat = {
    type: "json-schema",
    name: nonEmptyString(name) ?? "response",
    schema: isObject(schema) ? schema : {},
  };
  if (typeof description === "string") format.description = description;
  if (typeof strict === "boolean") format.strict = strict;
  return format;
}
