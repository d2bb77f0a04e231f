// Neutral request -> body of a Messages request of version 2023-06-01, by the rules of the model.

import type { Message, TextPart } from "../../generation/content.ts";
import { DropList } from "../../generation/dropped.ts";
import type { GenerationRequest, Sampling } from "../../generation/request.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { invalidField } from "../fields.ts";
import type { BackendTarget, EncodedRequest } from "../protocol.ts";
import { limitBreakpoints } from "./cache-control.ts";
import {
  type EncodingContext,
  encodeAssistantPart,
  encodePlainText,
  encodeUserPart,
  foreignServerCalls,
} from "./content-encoder.ts";
import { type ModelRules, rulesOf } from "./model-rules.ts";
import { cleanSchema } from "./schema-cleaning.ts";
import { planThinking } from "./thinking-config.ts";
import {
  lacksThinking,
  mergeTurns,
  moveInstructions,
  pairResults,
  type Turn,
  withDistinctIds,
} from "./tool-results.ts";
import { encodeTools } from "./tools.ts";
import { type Block, isBlank, textOf } from "./wire.ts";

/** Lets version 2023-06-01 take messages with the role system. */
const SYSTEM_TURNS_BETA = "mid-conversation-system-2026-04-07";

const START = "(The conversation begins with the assistant.)";
const NOTHING_SAID = "(There is no message. Follow the instructions.)";
const GO_ON = "Go on exactly where your last message ends. Do not repeat any of it.";

export function encodeRequest(request: GenerationRequest, target: BackendTarget): EncodedRequest {
  refuseChoices(request.sampling);
  const dropped = new DropList();
  const rules = rulesOf(target.model);
  const isOwn = request.origin.protocol === "messages";
  const { system, turns } = encodeConversation(request, rules, isOwn, dropped);
  const limit = target.maxOutputTokens ?? rules.maxOutputTokens;
  const plan = planThinking(request.reasoning, {
    model: target.model,
    rules,
    isOwn,
    maxTokens: allowedTokens(request.maxOutputTokens, limit, rules, target, dropped),
    limit,
    lacksThinking: lacksThinking(turns),
    dropped,
  });
  const isThinking = plan.thinking !== undefined && plan.thinking.type !== "disabled";
  const { tools, toolChoice, beside } = encodeTools(request, rules, isThinking, dropped);

  const body: JsonObject = { model: target.model, max_tokens: plan.maxTokens, ...beside };
  const format = encodeFormat(request, rules, system, dropped);
  if (system.length > 0) body.system = system;
  body.messages = turns;
  if (tools.length > 0) body.tools = tools;
  if (toolChoice !== undefined) body.tool_choice = toolChoice;
  if (plan.thinking !== undefined) body.thinking = plan.thinking;
  if (plan.effort !== undefined || format !== undefined) {
    body.output_config = {
      ...(plan.effort !== undefined && { effort: plan.effort }),
      ...(format !== undefined && { format }),
    };
  }
  encodeSampling(body, request.sampling, rules, isThinking, dropped);
  encodeUser(body, request, isOwn, dropped);
  if (request.stream) body.stream = true;
  encodeExtensions(body, request, isOwn, dropped);
  limitBreakpoints([...tools, ...system, ...turns.flatMap(({ content }) => content)], dropped);
  const headers = turns.some(({ role }) => role === "system") ? { "anthropic-beta": SYSTEM_TURNS_BETA } : undefined;
  return { body, dropped: dropped.entries, ...(headers !== undefined && { headers }) };
}

function refuseChoices({ choices }: Sampling): void {
  if (choices !== undefined && choices > 1) {
    throw invalidField("n", "this model's backend gives one choice per request.");
  }
}

function allowedTokens(
  wished: number | undefined,
  limit: number,
  rules: ModelRules,
  target: BackendTarget,
  dropped: DropList,
): number | undefined {
  const isSure = rules.isKnown || target.maxOutputTokens !== undefined;
  if (wished === undefined || wished <= limit || !isSure) return wished;
  dropped.add("max_tokens", `the model's limit is ${limit}`);
  return limit;
}

interface Conversation {
  system: Block[];
  turns: Turn[];
}

function encodeConversation(
  request: GenerationRequest,
  rules: ModelRules,
  isOwn: boolean,
  dropped: DropList,
): Conversation {
  const context: EncodingContext = { isOwn, foreignCalls: foreignServerCalls(request.messages), dropped };
  const system = encodeInstructions(request.system);
  const turns: Turn[] = [];
  for (const message of request.messages) {
    if (message.name !== undefined) dropped.add("messages[].name");
    if (message.role !== "system") turns.push(encodeTurn(message, context));
    else if (rules.systemTurns && turns.length > 0) turns.push(encodeSystemTurn(message));
    else {
      if (turns.length > 0) dropped.add("system message", "the model takes instructions at the beginning only");
      system.push(...encodeInstructions(message.parts.filter((part) => part.type === "text")));
    }
  }
  const paired = pairResults(withDistinctIds(mergeTurns(moveInstructions(mergeTurns(turns)))), dropped);
  return { system, turns: withEnds(paired, rules, dropped) };
}

function encodeInstructions(parts: readonly TextPart[]): Block[] {
  return parts.map(encodePlainText).filter((block) => block !== undefined);
}

function encodeSystemTurn({ parts }: Message): Turn {
  return { role: "system", content: encodeInstructions(parts.filter((part) => part.type === "text")) };
}

function encodeTurn(message: Message, context: EncodingContext): Turn {
  const role = message.role === "assistant" ? "assistant" : "user";
  const encode = role === "assistant" ? encodeAssistantPart : encodeUserPart;
  const content = message.parts.map((part) => encode(part, context)).filter((block) => block !== undefined);
  return { role, content };
}

/** A conversation begins with the user; whether it may end with the assistant depends on the model. */
function withEnds(turns: readonly Turn[], rules: ModelRules, dropped: DropList): Turn[] {
  const whole = [...turns];
  if (whole.length === 0) {
    whole.push({ role: "user", content: [{ type: "text", text: NOTHING_SAID }] });
    dropped.add("messages", "a conversation needs a message here; a line was added");
  }
  if (whole[0] !== undefined && whole[0].role !== "user") {
    whole.unshift({ role: "user", content: [{ type: "text", text: START }] });
    dropped.add("messages[0]", "a conversation begins with the user here; a line was added");
  }
  const last = whole.at(-1);
  if (last?.role !== "assistant" || isPaused(last)) return whole;
  trimEnd(last);
  if (last.content.length === 0) whole.pop();
  else if (!rules.prefill) {
    whole.push({ role: "user", content: [{ type: "text", text: GO_ON }] });
    dropped.add("prefill", "the model does not go on in an assistant message; it is asked to in words");
  }
  return whole;
}

/** A turn that stopped inside a server-side tool is sent back as it is, to be continued. */
function isPaused({ content }: Turn): boolean {
  const type = content.at(-1)?.type ?? "";
  return type === "server_tool_use" || type.endsWith("_tool_result");
}

/** Blanks at the end of a beginning of an answer are refused. */
function trimEnd({ content }: Turn): void {
  const last = content.at(-1);
  if (last?.type !== "text") return;
  last.text = textOf(last.text).trimEnd();
}

function encodeFormat(
  { responseFormat }: GenerationRequest,
  rules: ModelRules,
  system: Block[],
  dropped: DropList,
): JsonObject | undefined {
  if (responseFormat === undefined || responseFormat.type === "text") return undefined;
  if (responseFormat.type === "json-schema" && rules.structuredOutput) {
    const schema = cleanSchema(responseFormat.schema);
    if (schema !== undefined) return { type: "json_schema", schema };
  }
  dropped.add("response_format", "the model is asked for it in words");
  const schema =
    responseFormat.type === "json"
      ? "It is one JSON object."
      : `It is valid against this JSON Schema:\n${JSON.stringify(responseFormat.schema)}`;
  const text = `Answer with JSON only: no words before or after it, and no code fence. ${schema}`;
  system.push({ type: "text", text });
  return undefined;
}

function encodeSampling(
  body: JsonObject,
  sampling: Sampling,
  rules: ModelRules,
  isThinking: boolean,
  dropped: DropList,
): void {
  const { temperature, topP, topK, stop } = sampling;
  if (!rules.sampling || isThinking) dropSampling(sampling, isThinking && rules.sampling, dropped);
  else {
    if (temperature !== undefined) {
      body.temperature = Math.min(1, Math.max(0, temperature));
      if (temperature > 1) dropped.add("temperature", "1 is the highest");
    }
    // Claude models take one of the two.
    if (topP !== undefined && temperature !== undefined && rules.isKnown) dropped.add("top_p", "temperature is set");
    else if (topP !== undefined) body.top_p = topP;
    if (topK !== undefined) body.top_k = topK;
  }
  const stops = stop?.filter((sequence) => !isBlank(sequence)) ?? [];
  if (stop !== undefined && stops.length < stop.length) dropped.add("stop", "blank sequences are not allowed");
  if (stops.length > 0) body.stop_sequences = stops;
  if (sampling.frequencyPenalty !== undefined) dropped.add("frequency_penalty");
  if (sampling.presencePenalty !== undefined) dropped.add("presence_penalty");
  if (sampling.seed !== undefined) dropped.add("seed");
  if (sampling.logprobs === true || sampling.topLogprobs !== undefined) dropped.add("logprobs");
  if (sampling.logitBias !== undefined) dropped.add("logit_bias");
}

function dropSampling({ temperature, topP, topK }: Sampling, isThinking: boolean, dropped: DropList): void {
  const reason = isThinking ? "not while the model thinks" : "the model takes no sampling parameters";
  // 1 is what the model does anyway.
  if (temperature !== undefined && temperature !== 1) dropped.add("temperature", reason);
  if (topP !== undefined && topP !== 1) dropped.add("top_p", reason);
  if (topK !== undefined) dropped.add("top_k", reason);
}

function encodeUser(body: JsonObject, request: GenerationRequest, isOwn: boolean, dropped: DropList): void {
  if (request.user !== undefined) body.metadata = { user_id: request.user };
  if (request.metadata !== undefined) {
    if (isOwn) body.metadata = { ...request.metadata, ...(body.metadata as JsonObject | undefined) };
    else dropped.add("metadata");
  }
  if (request.verbosity !== undefined) dropped.add("verbosity");
  if (request.promptCacheKey !== undefined) dropped.add("prompt_cache_key");
}

/** Members that only this format knows come back as they were; those of another are listed. */
function encodeExtensions(
  body: JsonObject,
  { extensions }: GenerationRequest,
  isOwn: boolean,
  dropped: DropList,
): void {
  for (const [member, value] of Object.entries(extensions)) {
    if (!isOwn) dropped.add(member);
    else if (member === "output_config" && isObject(value)) {
      body.output_config = { ...value, ...(isObject(body.output_config) ? body.output_config : {}) };
    } else if (!Object.hasOwn(body, member)) body[member] = value;
  }
}
