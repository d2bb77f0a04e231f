// Neutral request -> body of Converse and ConverseStream. The model stands in the URL, and whether the answer streams, too.

import { DropList } from "../../generation/dropped.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import { cleanSchema } from "../constrained-schema.ts";
import type { BackendTarget, EncodedRequest } from "../protocol.ts";
import { isBlank } from "../reading.ts";
import { askForJson, listUnsupported, refuseChoices } from "../request-words.ts";
import { limitCachePoints } from "./cache-points.ts";
import { encodeConversation } from "./conversation.ts";
import type { Encoding } from "./encoding.ts";
import { rulesOf } from "./model-rules.ts";
import { encodeReasoning } from "./reasoning.ts";
import { encodeTools } from "./tools.ts";
import type { ConverseBlock } from "./wire.ts";

export function encodeRequest(request: GenerationRequest, target: BackendTarget): EncodedRequest {
  refuseChoices(request.sampling);
  const dropped = new DropList();
  const encoding = { request, target, rules: rulesOf(target.model), documentNames: new Set<string>(), dropped };
  const { messages, system } = encodeConversation(encoding);
  const outputConfig = encodeFormat(encoding, system);
  const { tools, toolChoice } = encodeTools(encoding);
  limitCachePoints([tools, system, ...messages.map(({ content }) => content)], encoding);
  const { fields, isAlone } = encodeReasoning(encoding);
  const inferenceConfig = isAlone ? {} : encodeInference(encoding);
  if (isAlone) listUnheard(encoding);
  const additional = isAlone ? fields : { ...encodeTopK(encoding), ...fields };
  listLosses(request, dropped);
  const body: JsonObject = {
    messages,
    ...(system.length > 0 && { system }),
    ...filled("inferenceConfig", { ...inferenceConfig, ...encodeStops(encoding) }),
    ...(tools.length > 0 && { toolConfig: { tools, ...compact({ toolChoice }) } }),
    ...filled("additionalModelRequestFields", additional),
    ...compact({ outputConfig }),
  };
  return { body, dropped: dropped.entries };
}

function filled(name: string, members: JsonObject): JsonObject {
  return Object.keys(members).length === 0 ? {} : { [name]: members };
}

function encodeInference({ request, target, dropped }: Encoding): JsonObject {
  const { temperature, topP } = request.sampling;
  if (temperature !== undefined && temperature > 1) dropped.add("temperature", "1 is the highest");
  return compact({
    maxTokens: allowedTokens(request.maxOutputTokens, target.maxOutputTokens, dropped),
    temperature: temperature === undefined ? undefined : Math.min(1, temperature),
    topP,
  });
}

function allowedTokens(wished: number | undefined, limit: number | undefined, dropped: DropList): number | undefined {
  if (wished === undefined || limit === undefined || wished <= limit) return wished;
  dropped.add("max_tokens", `the model's limit is ${limit}`);
  return limit;
}

function encodeStops({ request: { sampling }, dropped }: Encoding): JsonObject {
  const stops = sampling.stop?.filter((sequence) => !isBlank(sequence)) ?? [];
  if (stops.length < (sampling.stop?.length ?? 0)) dropped.add("stop", "blank sequences are not allowed");
  return stops.length === 0 ? {} : { stopSequences: stops };
}

function encodeTopK({ request: { sampling }, rules, dropped }: Encoding): JsonObject {
  if (sampling.topK === undefined) return {};
  if (rules.topK !== undefined) return rules.topK(sampling.topK);
  dropped.add("top_k");
  return {};
}

/** The inference parameters of a request whose effort stands alone. */
function listUnheard({ request, dropped }: Encoding): void {
  const { temperature, topP, topK } = request.sampling;
  const reason = "not with this reasoning effort";
  if (temperature !== undefined) dropped.add("temperature", reason);
  if (topP !== undefined) dropped.add("top_p", reason);
  if (topK !== undefined) dropped.add("top_k", reason);
  if (request.maxOutputTokens !== undefined) dropped.add("max_tokens", reason);
}

/** Undefined where the model is asked for it in words. */
function encodeFormat({ request, rules, dropped }: Encoding, system: ConverseBlock[]): JsonObject | undefined {
  const { responseFormat: format } = request;
  if (format === undefined || format.type === "text") return undefined;
  const schema = format.type === "json-schema" && rules.structuredOutput ? cleanSchema(format.schema) : undefined;
  if (format.type === "json-schema" && schema !== undefined) {
    const { name, description } = format;
    const jsonSchema = { schema: JSON.stringify(schema), name, ...compact({ description }) };
    return { textFormat: { type: "json_schema", structure: { jsonSchema } } };
  }
  dropped.add("response_format", "the model is asked for it in words");
  system.push({ text: askForJson(format.type === "json" ? undefined : format.schema) });
  return undefined;
}

function listLosses(request: GenerationRequest, dropped: DropList): void {
  listUnsupported(
    request.sampling,
    ["frequencyPenalty", "presencePenalty", "seed", "logprobs", "topLogprobs", "logitBias"],
    dropped,
  );
  listUnsupported(request, ["verbosity", "user", "metadata", "promptCacheKey"], dropped);
  for (const member of Object.keys(request.extensions)) dropped.add(member);
}
