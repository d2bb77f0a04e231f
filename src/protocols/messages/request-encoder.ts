// Neutral request -> body of a Messages request of version 2023-06-01, by the rules of the model.

import type { ContentPart, Message } from "../../generation/content.ts";
import { DropList } from "../../generation/dropped.ts";
import type { GenerationRequest, Sampling } from "../../generation/request.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { cleanSchema } from "../constrained-schema.ts";
import type { BackendTarget, EncodedRequest } from "../protocol.ts";
import { isBlank, objectOf, textOf } from "../reading.ts";
import { askForJson, CONVERSATION_START, listUnsupported, refuseChoices } from "../request-words.ts";
import { limitBreakpoints } from "./cache-control.ts";
import {
  type EncodingContext,
  encodeAssistantPart,
  encodePlainText,
  encodeUserPart,
  foreignServerCalls,
} from "./content-encoder.ts";
import { type ModelRules, rulesOf } from "./model-rules.ts";
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
import type { Block } from "./wire.ts";

/** Lets version 2023-06-01 take messages with the role system. */
const SYSTEM_TURNS_BETA = "mid-conversation-system-2026-04-07";

const NOTHING_SAID = "(There is no message. Follow the instructions.)";
const GO_ON = "Go on exactly where your last message ends. Do not repeat any of it.";

interface Encoding extends EncodingContext {
  request: GenerationRequest;
  target: BackendTarget;
  rules: ModelRules;
}

export function encodeRequest(request: GenerationRequest, target: BackendTarget): EncodedRequest {
  refuseChoices(request.sampling);
  const dropped = new DropList();
  const { model } = target;
  const rules = rulesOf(model);
  const isOwn = request.origin.protocol === "messages";
  const encoding = { request, target, rules, isOwn, foreignCalls: foreignServerCalls(request.messages), dropped };
  const { system, turns } = encodeConversation(encoding);
  const limit = target.maxOutputTokens ?? rules.maxOutputTokens;
  const maxTokens = allowedTokens(encoding, limit);
  const thinkingContext = { model, rules, isOwn, maxTokens, limit, lacksThinking: lacksThinking(turns), dropped };
  const plan = planThinking(request.reasoning, thinkingContext);
  const isThinking = plan.thinking !== undefined && plan.thinking.type !== "disabled";
  const { tools, toolChoice, beside } = encodeTools(request, { rules, isThinking, dropped });
  const outputConfig = compact({ effort: plan.effort, format: encodeFormat(encoding, system) });
  const body: JsonObject = {
    model,
    max_tokens: plan.maxTokens,
    ...beside,
    ...(system.length > 0 && { system }),
    messages: turns,
    ...(tools.length > 0 && { tools }),
    ...compact({ tool_choice: toolChoice, thinking: plan.thinking }),
    ...(Object.keys(outputConfig).length > 0 && { output_config: outputConfig }),
    ...encodeSampling(encoding, isThinking),
    ...encodeUser(encoding),
    ...(request.stream && { stream: true }),
  };
  encodeExtensions(body, encoding);
  limitBreakpoints([...tools, ...system, ...turns.flatMap(({ content }) => content)], dropped);
  const headers = turns.some(({ role }) => role === "system") ? { "anthropic-beta": SYSTEM_TURNS_BETA } : undefined;
  return { body, dropped: dropped.entries, ...compact({ headers }) };
}

function allowedTokens({ request, rules, target, dropped }: Encoding, limit: number): number | undefined {
  const { maxOutputTokens: wished } = request;
  const isSure = rules.isKnown || target.maxOutputTokens !== undefined;
  if (wished === undefined || wished <= limit || !isSure) return wished;
  dropped.add("max_tokens", `the model's limit is ${limit}`);
  return limit;
}

function encodeConversation(encoding: Encoding): { system: Block[]; turns: Turn[] } {
  const { request, rules, dropped } = encoding;
  const system = encodeInstructions(request.system);
  const turns: Turn[] = [];
  for (const message of request.messages) {
    if (message.name !== undefined) dropped.add("messages[].name");
    if (message.role !== "system") turns.push(encodeTurn(message, encoding));
    else if (rules.systemTurns && turns.length > 0) {
      turns.push({ role: "system", content: encodeInstructions(message.parts) });
    } else {
      if (turns.length > 0) dropped.add("system message", "the model takes instructions at the beginning only");
      system.push(...encodeInstructions(message.parts));
    }
  }
  const paired = pairResults(withDistinctIds(mergeTurns(moveInstructions(mergeTurns(turns)))), dropped);
  return { system, turns: withEnds(paired, rules, dropped) };
}

function encodeInstructions(parts: readonly ContentPart[]): Block[] {
  return parts.flatMap((part) => (part.type === "text" ? (encodePlainText(part) ?? []) : []));
}

function encodeTurn(message: Message, context: EncodingContext): Turn {
  const role = message.role === "assistant" ? "assistant" : "user";
  const encode = role === "assistant" ? encodeAssistantPart : encodeUserPart;
  return { role, content: message.parts.flatMap((part) => encode(part, context) ?? []) };
}

/** A conversation begins with the user; whether it may end with the assistant depends on the model. */
function withEnds(turns: readonly Turn[], rules: ModelRules, dropped: DropList): Turn[] {
  const whole = [...turns];
  if (whole.length === 0) {
    whole.push({ role: "user", content: [{ type: "text", text: NOTHING_SAID }] });
    dropped.add("messages", "a conversation needs a message here; a line was added");
  }
  if (whole[0] !== undefined && whole[0].role !== "user") {
    whole.unshift({ role: "user", content: [{ type: "text", text: CONVERSATION_START }] });
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

/** Undefined where the model is asked for it in words. */
function encodeFormat({ request, rules, dropped }: Encoding, system: Block[]): JsonObject | undefined {
  const { responseFormat: format } = request;
  if (format === undefined || format.type === "text") return undefined;
  if (format.type === "json-schema" && rules.structuredOutput) {
    const schema = cleanSchema(format.schema);
    if (schema !== undefined) return { type: "json_schema", schema };
  }
  dropped.add("response_format", "the model is asked for it in words");
  system.push({ type: "text", text: askForJson(format.type === "json" ? undefined : format.schema) });
  return undefined;
}

function encodeSampling({ request: { sampling }, rules, dropped }: Encoding, isThinking: boolean): JsonObject {
  const body: JsonObject = {};
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
  listUnsupported(
    sampling,
    ["frequencyPenalty", "presencePenalty", "seed", "logprobs", "topLogprobs", "logitBias"],
    dropped,
  );
  return body;
}

function dropSampling({ temperature, topP, topK }: Sampling, isThinking: boolean, dropped: DropList): void {
  const reason = isThinking ? "not while the model thinks" : "the model takes no sampling parameters";
  // 1 is what the model does anyway.
  if (temperature !== undefined && temperature !== 1) dropped.add("temperature", reason);
  if (topP !== undefined && topP !== 1) dropped.add("top_p", reason);
  if (topK !== undefined) dropped.add("top_k", reason);
}

function encodeUser({ request, isOwn, dropped }: Encoding): JsonObject {
  const { user, metadata } = request;
  if (!isOwn && metadata !== undefined) dropped.add("metadata");
  listUnsupported(request, ["verbosity", "promptCacheKey"], dropped);
  const own = isOwn ? metadata : undefined;
  return user === undefined && own === undefined ? {} : { metadata: { ...own, ...compact({ user_id: user }) } };
}

/** Members that only this format knows come back as they were; those of another are listed. */
function encodeExtensions(body: JsonObject, { request, isOwn, dropped }: Encoding): void {
  for (const [member, value] of Object.entries(request.extensions)) {
    if (!isOwn) dropped.add(member);
    else if (member === "output_config" && isObject(value)) {
      body.output_config = { ...value, ...objectOf(body.output_config) };
    } else if (!Object.hasOwn(body, member)) body[member] = value;
  }
}
