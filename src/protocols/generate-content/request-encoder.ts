// Neutral request -> body of a generateContent request. The model and whether it streams stand in the URL.

import { DropList } from "../../generation/dropped.ts";
import type { GenerationRequest, Sampling } from "../../generation/request.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import { invalidField } from "../fields.ts";
import type { BackendTarget, EncodedRequest } from "../protocol.ts";
import { askForJson, listUnsupported, refuseChoices } from "../request-words.ts";
import { type Conversation, encodeConversation } from "./contents.ts";
import type { Encoding } from "./encoding.ts";
import { functionNames } from "./function-names.ts";
import { type ModelRules, rulesOf } from "./model-rules.ts";
import { cleanSchema } from "./schema-subset.ts";
import { encodeThinking } from "./thinking.ts";
import { encodeTools } from "./tools.ts";
import type { GeminiPart } from "./wire.ts";

const MAX_STOP_SEQUENCES = 5;
const MAX_SEED = 2 ** 31 - 1;

/** What stands for a conversation without a word. */
const NOTHING = "(The conversation is empty.)";

export function encodeRequest(request: GenerationRequest, target: BackendTarget): EncodedRequest {
  refuseChoices(request.sampling);
  const dropped = new DropList();
  const rules = rulesOf(target.model);
  const encoding = { request, target, rules, names: functionNames(request.messages), dropped };
  const conversation = encodeConversation(encoding);
  const { tools, toolConfig } = encodeTools(encoding);
  const format = encodeFormat(encoding, tools !== undefined, conversation.system);
  const thinkingConfig = encodeThinking(request.reasoning, target.model, dropped);
  const generationConfig: JsonObject = {
    ...encodeSampling(request.sampling, dropped),
    ...encodeLimit(encoding),
    ...format,
    ...compact({ thinkingConfig }),
  };
  listLosses(request, dropped);
  const body: JsonObject = {
    ...placeInstructions(conversation, rules),
    ...compact({ tools, toolConfig }),
    ...(Object.keys(generationConfig).length > 0 && { generationConfig }),
  };
  return { body, dropped: dropped.entries };
}

/** Instructions alone are no conversation, and some models have no place for instructions: the user says them then. */
function placeInstructions({ contents, system }: Conversation, { systemInstruction }: ModelRules): JsonObject {
  if (contents.length === 0) {
    return { contents: [{ role: "user", parts: system.length === 0 ? [{ text: NOTHING }] : system }] };
  }
  if (system.length === 0) return { contents };
  if (systemInstruction) return { contents, systemInstruction: { parts: system } };
  const [first, ...rest] = contents;
  return { contents: [{ role: "user", parts: [...system, ...(first?.parts ?? [])] }, ...rest] };
}

/** Older models do not take a form of the answer beside tools, Gemma takes none: they are asked for it in words. */
function encodeFormat({ request, rules, dropped }: Encoding, hasTools: boolean, system: GeminiPart[]): JsonObject {
  const { responseFormat: format } = request;
  if (format === undefined || format.type === "text") return {};
  const schema = format.type === "json-schema" && Object.keys(format.schema).length > 0 ? format.schema : undefined;
  if (rules.jsonFormat && (rules.mixesTools || !hasTools)) {
    const responseJsonSchema = schema && cleanSchema(schema);
    return { responseMimeType: "application/json", ...compact({ responseJsonSchema }) };
  }
  dropped.add("response_format", "the model is asked for it in words");
  system.push({ text: askForJson(schema) });
  return {};
}

function encodeSampling({ temperature, topP, topK, seed, stop }: Sampling, dropped: DropList): JsonObject {
  const stops = stop?.filter((sequence) => sequence !== "") ?? [];
  if (stops.length > MAX_STOP_SEQUENCES) {
    throw invalidField("stop", `this model's backend takes at most ${MAX_STOP_SEQUENCES} stop sequences.`);
  }
  const isSeed = seed !== undefined && Number.isInteger(seed) && Math.abs(seed) <= MAX_SEED;
  if (seed !== undefined && !isSeed) dropped.add("seed", "only whole numbers of 32 bits are taken");
  return {
    ...compact({ temperature, topP, topK, seed: isSeed ? seed : undefined }),
    ...(stops.length > 0 && { stopSequences: stops }),
  };
}

/** Thoughts count towards the limit, as in the other formats. */
function encodeLimit({ request, target, dropped }: Encoding): JsonObject {
  const { maxOutputTokens: wished } = request;
  if (wished === undefined) return {};
  const { maxOutputTokens: limit } = target;
  if (limit === undefined || wished <= limit) return { maxOutputTokens: wished };
  dropped.add("max_tokens", `the model's limit is ${limit}`);
  return { maxOutputTokens: limit };
}

/** Penalties and logprobs exist here, too, but most models refuse them. */
function listLosses(request: GenerationRequest, dropped: DropList): void {
  const { sampling, extensions } = request;
  listUnsupported(sampling, ["frequencyPenalty", "presencePenalty", "logprobs", "topLogprobs", "logitBias"], dropped);
  listUnsupported(request, ["verbosity", "user", "metadata", "promptCacheKey"], dropped);
  for (const member of Object.keys(extensions)) dropped.add(member);
}
