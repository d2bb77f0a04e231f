// A chat client's request -> the neutral request.

import {
  EFFORTS,
  type Effort,
  type GenerationRequest,
  type ReasoningWish,
  type ResponseFormat,
} from "../../generation/request.ts";
import { compact, isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import { decodeSampling, extensionsOf } from "../decode-request.ts";
import { invalidField, missingField, wrongType } from "../fields.ts";
import { nonEmptyText, numberOf, objectOf, optionalBoolean, optionalObject } from "../reading.ts";
import { decodeMessages } from "./message-decoder.ts";
import { readChatRequest } from "./read-request.ts";
import { decodeToolChoice, decodeTools, usesFunctions } from "./tools.ts";
import { unsupported } from "./wire.ts";

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
  return compact({
    model,
    system,
    messages,
    tools: decodeTools(body),
    sampling: compact({ ...decodeSampling(body, body.top_logprobs), logprobs: body.logprobs === true || undefined }),
    reasoning: decodeReasoningWish(body),
    stream,
    origin: { protocol: "chat", body },
    extensions: extensionsOf(body, KNOWN),
    toolChoice: decodeToolChoice(body),
    // The deprecated form holds one call.
    parallelToolCalls: optionalBoolean(body.parallel_tool_calls) ?? (usesFunctions(body) ? false : undefined),
    maxOutputTokens: numberOf(body.max_completion_tokens) ?? numberOf(body.max_tokens),
    responseFormat: decodeResponseFormat(body.response_format),
    verbosity: nonEmptyText(body.verbosity),
    user: nonEmptyText(body.safety_identifier) ?? nonEmptyText(body.user),
    metadata: optionalObject(body.metadata),
    promptCacheKey: nonEmptyText(body.prompt_cache_key),
  });
}

/** An answer in audio is not an answer in text: nothing but a chat backend can give it. */
function checkModalities(modalities: unknown): void {
  if (!Array.isArray(modalities) || modalities.every((modality) => modality === "text")) return;
  throw unsupported("modalities", "only backends that speak chat completions can answer in anything but text.");
}

// ---- Reasoning

function decodeReasoningWish(body: JsonObject): ReasoningWish {
  const { effort, max_tokens, enabled, exclude } = objectOf(body.reasoning);
  return compact({
    effort: decodeEffort(body.reasoning_effort, "reasoning_effort") ?? decodeEffort(effort, "reasoning.effort"),
    // The other members of `reasoning` are the ones that routers in front of many vendors know.
    budgetTokens: numberOf(max_tokens),
    enabled: optionalBoolean(enabled),
    visible: typeof exclude === "boolean" ? !exclude : undefined,
  });
}

function decodeEffort(value: unknown, field: string): Effort | undefined {
  if (typeof value !== "string") return undefined;
  const effort = EFFORTS.find((known) => known === value);
  if (effort === undefined) throw invalidField(field, `expected one of ${EFFORTS.join(", ")}.`);
  return effort;
}

// ---- Response format

function decodeResponseFormat(value: unknown): ResponseFormat | undefined {
  if (!isPresent(value)) return undefined;
  if (!isObject(value)) throw wrongType("response_format", "an object", value);
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
  if (isPresent(schema) && !isObject(schema)) {
    throw wrongType(`${path}.schema`, "a JSON Schema object", schema);
  }
  return compact({
    type: "json-schema",
    name: nonEmptyText(name) ?? "response",
    schema: objectOf(schema),
    description: typeof description === "string" ? description : undefined,
    strict: optionalBoolean(strict),
  });
}
