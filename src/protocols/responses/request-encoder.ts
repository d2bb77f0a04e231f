// The neutral request -> a Responses request for a backend. Nothing is kept there (store: false): every request carries
// its whole conversation, and sealed thoughts come back with it.

import { DropList } from "../../generation/dropped.ts";
import type { GenerationRequest, ReasoningWish, ResponseFormat } from "../../generation/request.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import { invalidField } from "../fields.ts";
import type { BackendTarget, EncodedRequest } from "../protocol.ts";
import { filled } from "../reading.ts";
import { listUnsupported } from "../request-words.ts";
import { encodeMessages } from "./history-items.ts";
import { SEALED_REASONING } from "./request-decoder.ts";
import { encodeToolChoice, encodeTools } from "./tools.ts";

export function encodeRequest(request: GenerationRequest, target: BackendTarget): EncodedRequest {
  const dropped = new DropList();
  if ((request.sampling.choices ?? 1) > 1) throw invalidField("n", "the backend of this model gives one choice only.");
  listLosses(request, dropped);
  const isOwn = request.origin.protocol === "responses";
  const body = compact<JsonObject>({
    ...(isOwn && request.extensions),
    model: target.model,
    ...encodeInput(request, dropped),
    ...encodeToolFields(request, dropped),
    ...encodeLimits(request, target),
    reasoning: encodeReasoning(request.reasoning),
    include: includes(request, isOwn),
    text: encodeText(request),
    user: request.user,
    metadata: request.metadata,
    prompt_cache_key: request.promptCacheKey,
    store: false,
    stream: request.stream,
  });
  return { body, dropped: dropped.entries };
}

const UNSUPPORTED = ["topK", "frequencyPenalty", "presencePenalty", "seed", "stop", "logprobs", "logitBias"] as const;

function listLosses({ sampling, reasoning, origin, extensions }: GenerationRequest, dropped: DropList): void {
  listUnsupported(sampling, UNSUPPORTED, dropped);
  if (reasoning.budgetTokens !== undefined) dropped.add("thinking budget", "only efforts can be asked for");
  if (origin.protocol !== "responses") for (const name of Object.keys(extensions)) dropped.add(name);
}

function encodeInput(request: GenerationRequest, dropped: DropList): JsonObject {
  const { system, messages } = request;
  // An input without items is refused.
  if (messages.length === 0) return { input: encodeMessages([{ role: "system", parts: system }], dropped) };
  if (system.some((part) => part.cache !== undefined)) dropped.add("cache_control");
  const input = encodeMessages(messages, dropped);
  return system.length === 0 ? { input } : { instructions: system.map((part) => part.text).join("\n\n"), input };
}

function encodeToolFields(request: GenerationRequest, dropped: DropList): JsonObject {
  const { tools, toolChoice, parallelToolCalls } = request;
  // Without tools a choice among them is refused by the public service.
  if (tools.length === 0) return {};
  return {
    tools: encodeTools(tools, request.origin.protocol === "responses", dropped),
    tool_choice: toolChoice && encodeToolChoice(toolChoice, tools),
    parallel_tool_calls: parallelToolCalls,
  };
}

function encodeLimits({ maxOutputTokens, sampling }: GenerationRequest, target: BackendTarget): JsonObject {
  const least = target.kind.leastOutputTokens ?? 1;
  const most = target.maxOutputTokens ?? Number.POSITIVE_INFINITY;
  return {
    max_output_tokens: maxOutputTokens === undefined ? undefined : Math.max(least, Math.min(maxOutputTokens, most)),
    temperature: sampling.temperature,
    top_p: sampling.topP,
  };
}

function encodeReasoning({ effort, enabled, visible }: ReasoningWish): JsonObject | undefined {
  const wanted = effort ?? (enabled === false ? "none" : undefined);
  const summary = visible === true && wanted !== "none" ? "auto" : undefined;
  return wanted === undefined && summary === undefined ? undefined : compact({ effort: wanted, summary });
}

/** Models that cannot think refuse to be asked for sealed thoughts. */
function includes({ reasoning, extensions }: GenerationRequest, isOwn: boolean): unknown[] | undefined {
  const { effort, enabled, budgetTokens, sealed } = reasoning;
  const isWanted = effort === undefined ? enabled === true || budgetTokens !== undefined : effort !== "none";
  const own = isOwn && Array.isArray(extensions.include) ? extensions.include : [];
  return filled([...own, ...(isWanted || sealed === true ? [SEALED_REASONING] : [])]);
}

function encodeText({ responseFormat, verbosity }: GenerationRequest): JsonObject | undefined {
  if (responseFormat === undefined && verbosity === undefined) return undefined;
  return compact({ format: responseFormat && encodeFormat(responseFormat), verbosity });
}

function encodeFormat(format: ResponseFormat): JsonObject {
  switch (format.type) {
    case "text":
      return { type: "text" };
    case "json":
      return { type: "json_object" };
    case "json-schema": {
      const { name, description, schema, strict } = format;
      return compact({ type: "json_schema", name, description, schema, strict: strict ?? false });
    }
  }
}
