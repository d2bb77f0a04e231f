// The neutral request -> a request to a chat backend of any kind.

import { DropList } from "../../generation/dropped.ts";
import { keptReasoning, lostReasoning } from "../../generation/reasoning-effort.ts";
import type { GenerationRequest, ResponseFormat } from "../../generation/request.ts";
import type { Tool } from "../../generation/tools.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import { invalidField } from "../fields.ts";
import type { BackendTarget, EncodedRequest } from "../protocol.ts";
import { encodeMessages } from "./message-encoder.ts";
import { ANY_OBJECT_FORMAT, type ChatQuirks } from "./quirks.ts";
import { encodeTool, encodeToolChoice, fitToolChoice } from "./tools.ts";
import { adaptToVendor } from "./vendor-rules.ts";
import { unsupported } from "./wire.ts";

interface Encoding {
  request: GenerationRequest;
  target: BackendTarget;
  quirks: ChatQuirks;
  dropped: DropList;
}

export function encodeRequest(request: GenerationRequest, target: BackendTarget): EncodedRequest {
  const quirks = target.kind.chat;
  const dropped = new DropList();
  const encoding: Encoding = { request, target, quirks, dropped };
  const messages = encodeMessages(request, {
    quirks,
    dropped,
    kind: target.kind.name,
    signatureOf: target.signatureOf,
    origin: request.origin.protocol,
  });
  const body = compact({
    ...encodeExtensions(encoding),
    model: target.model,
    messages,
    ...encodeTools(encoding),
    ...encodeSampling(encoding),
    ...encodeReasoning(encoding),
    ...encodeIdentity(encoding),
    [quirks.outputLimit]: outputLimit(encoding),
    response_format: encodeResponseFormat(request.responseFormat, quirks),
    stream: request.stream ? true : undefined,
    // Statistics need the counts, whether or not the client asked for them.
    stream_options: request.stream ? { include_usage: true } : undefined,
  });
  return { body: forVendor(body, encoding), dropped: dropped.entries };
}

function forVendor(body: JsonObject, { quirks, target, dropped }: Encoding): JsonObject {
  const adapted = quirks.vendor && adaptToVendor(body, quirks.vendor, target.model);
  if (adapted === undefined) return body;
  for (const member of adapted.lost ?? []) dropped.add(member);
  return compact({ ...body, ...adapted.members });
}

function encodeExtensions({ request, quirks, dropped }: Encoding): JsonObject {
  if (request.origin.protocol !== "chat") {
    for (const key of Object.keys(request.extensions)) dropped.add(key);
    return {};
  }
  const extensions = { ...request.extensions };
  for (const key of quirks.leftOut) {
    if (key in extensions) dropped.add(key);
    delete extensions[key];
  }
  return extensions;
}

/** A member that not every kind knows: sent, or listed as dropped. */
function extra({ quirks, dropped }: Encoding, field: string, value: unknown): JsonObject {
  if (value === undefined) return {};
  if (quirks.extras.has(field)) return { [field]: value };
  dropped.add(field);
  return {};
}

// ---- Sampling and reasoning

function encodeSampling(encoding: Encoding): JsonObject {
  const { sampling } = encoding.request;
  if ((sampling.choices ?? 1) > 1) {
    throw invalidField("n", "expected 1: answers of this model are translated, and only one choice can be.");
  }
  if (sampling.logprobs === true || sampling.topLogprobs !== undefined) encoding.dropped.add("logprobs");
  return {
    temperature: sampling.temperature,
    top_p: sampling.topP,
    frequency_penalty: sampling.frequencyPenalty,
    presence_penalty: sampling.presencePenalty,
    seed: sampling.seed,
    stop: sampling.stop,
    ...extra(encoding, "top_k", sampling.topK),
    ...extra(encoding, "logit_bias", sampling.logitBias),
  };
}

function encodeReasoning({ request, target, dropped }: Encoding): JsonObject {
  const { effort, budgetTokens, enabled } = request.reasoning;
  const { origin } = request;
  if (origin.protocol === "chat") {
    for (const feature of lostReasoning(origin.body, target)) dropped.add(feature);
    return { reasoning_effort: effort, reasoning: keptReasoning(origin.body, target) };
  }
  if (effort === undefined) {
    if (budgetTokens !== undefined) dropped.add("thinking budget");
    if (enabled === false) dropped.add("thinking switched off");
  }
  return { reasoning_effort: effort };
}

function outputLimit({ request, target }: Encoding): number | undefined {
  const { maxOutputTokens } = request;
  if (maxOutputTokens === undefined || target.maxOutputTokens === undefined) return maxOutputTokens;
  return Math.min(maxOutputTokens, target.maxOutputTokens);
}

// ---- Who asks

/** OpenAI refuses a longer user; ids of other vendors' clients often are. */
const MAX_USER_LENGTH = 64;

function encodeIdentity(encoding: Encoding): JsonObject {
  const { request, dropped } = encoding;
  const isLong = request.user !== undefined && request.user.length > MAX_USER_LENGTH;
  if (isLong) dropped.add("user", `longer than ${MAX_USER_LENGTH} characters`);
  // Another format's metadata is not kept with the backend's answer, and OpenAI takes it only together with `store`.
  const isOwn = request.origin.protocol === "chat";
  if (!isOwn && request.metadata !== undefined) dropped.add("metadata");
  return {
    ...extra(encoding, "user", isLong ? undefined : request.user),
    ...extra(encoding, "metadata", isOwn ? request.metadata : undefined),
    ...extra(encoding, "prompt_cache_key", request.promptCacheKey),
    ...extra(encoding, "verbosity", request.verbosity),
  };
}

// ---- Tools

function encodeTools(encoding: Encoding): JsonObject {
  const { request, quirks, dropped } = encoding;
  const fitted = fitToolChoice(request.tools, (tool) => tool.name, request.toolChoice, quirks.toolChoice);
  if (fitted.isWeaker) dropped.add("tool_choice", "the backend cannot be made to call a tool");
  const options = fitted.tools.find(isSearchOptions)?.origin.value;
  const tools = fitted.tools
    .filter((tool) => !isSearchOptions(tool))
    .map((tool) => encodeKnownTool(tool, encoding))
    .filter((tool) => tool !== undefined);
  // Without tools, both of these are refused by OpenAI.
  if (tools.length === 0) return { web_search_options: options };
  return {
    web_search_options: options,
    tools,
    tool_choice: fitted.choice === undefined ? undefined : encodeToolChoice(fitted.choice, fitted.tools),
    ...extra(encoding, "parallel_tool_calls", request.parallelToolCalls),
  };
}

/** A search that a chat client asked for by web_search_options instead of by a tool. */
function isSearchOptions(tool: Tool): tool is Extract<Tool, { kind: "web-search" }> {
  return tool.kind === "web-search" && tool.origin.protocol === "chat" && tool.origin.value.type === undefined;
}

/** Undefined for a tool that was dropped. */
function encodeKnownTool(tool: Tool, { request, quirks, target, dropped }: Encoding): JsonObject | undefined {
  if ("cache" in tool && tool.cache !== undefined) dropped.add("cache_control on tools");
  const encoded = tool.kind === "custom" && !quirks.customTools ? undefined : encodeTool(tool);
  if (encoded === undefined) {
    if ("optional" in tool && tool.optional === true) {
      dropped.add(`hosted tool ${tool.name}`);
      return undefined;
    }
    const name = tool.kind === "custom" ? `custom tool ${tool.name}` : `hosted tool ${tool.name}`;
    const param = `tools[${request.tools.indexOf(tool)}]`;
    throw unsupported(
      param,
      `the ${name} cannot be offered to backends of type ${target.kind.name}, only functions can.`,
    );
  }
  return encoded;
}

// ---- Response format

function encodeResponseFormat(format: ResponseFormat | undefined, quirks: ChatQuirks): unknown {
  if (format === undefined || format.type === "text") return undefined;
  if (format.type === "json") return quirks.jsonObject ? { type: "json_object" } : ANY_OBJECT_FORMAT;
  const { name, description, schema, strict } = format;
  return { type: "json_schema", json_schema: compact({ name, description, schema, strict }) };
}
