// Body of a generateContent request -> neutral request. The model and whether it streams stand in the path; the caller
// writes them into the result.

import type { GenerationRequest, ResponseFormat, Sampling } from "../../generation/request.ts";
import { compact, isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import { invalidField } from "../fields.ts";
import { filled, nonEmptyText, numberOf, textsOf } from "../reading.ts";
import { decodeContents, decodeInstruction } from "./content-decoder.ts";
import { camelCase, either, generationConfigOf, inCamelCase, listOf, objectsIn } from "./members.ts";
import { checkConversation } from "./read-request.ts";
import { decodeSchema } from "./schema-decoder.ts";
import { decodeThinking } from "./thinking-wish.ts";
import { decodeTools, ownMembersOfTools } from "./tool-decoder.ts";

/** Members with a place in the neutral request, or in the path; all others are extensions. */
const KNOWN_MEMBERS: ReadonlySet<string> = new Set([
  ...["model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "cachedContent"],
]);

/** The same of generationConfig. */
const KNOWN_CONFIG: ReadonlySet<string> = new Set([
  ...["temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences", "seed"],
  ...["presencePenalty", "frequencyPenalty", "responseMimeType", "responseSchema", "responseJsonSchema"],
  ...["thinkingConfig", "responseModalities"],
]);

/** Of a part, beside what it says. */
const HINTS = [
  ["videoMetadata", "video_metadata"],
  ["mediaResolution", "media_resolution"],
] as const;

/** This format gives its schemas no name. */
const SCHEMA_NAME = "output";

export function decodeRequest(body: JsonObject): GenerationRequest {
  checkConversation(body);
  const members = inCamelCase(body);
  const config = inCamelCase(generationConfigOf(body));
  refuseVendorsOwn(members, config);
  return {
    model: "",
    system: decodeInstruction(members.systemInstruction),
    messages: decodeContents(body.contents),
    ...decodeTools(body),
    sampling: decodeSampling(config),
    reasoning: decodeThinking(config.thinkingConfig),
    ...compact({
      maxOutputTokens: numberOf(config.maxOutputTokens),
      responseFormat: decodeFormat(config),
    }),
    stream: false,
    origin: { protocol: "generate-content", body },
    extensions: decodeExtensions(body, members, config),
  };
}

/** What would change the meaning of a request if it was left out. */
function refuseVendorsOwn({ cachedContent }: JsonObject, { responseModalities }: JsonObject): void {
  if (nonEmptyText(cachedContent) !== undefined) {
    throw invalidField(
      "cachedContent",
      "this model's backend has no contents that Google keeps; send them in contents.",
    );
  }
  const modalities = textsOf(listOf(responseModalities)).map((modality) => modality.toUpperCase());
  if (modalities.length > 0 && !modalities.includes("TEXT")) {
    throw invalidField("generationConfig.responseModalities", "this model's backend answers with text; add TEXT.");
  }
}

function decodeSampling(config: JsonObject): Sampling {
  return compact({
    temperature: numberOf(config.temperature),
    topP: numberOf(config.topP),
    topK: numberOf(config.topK),
    frequencyPenalty: numberOf(config.frequencyPenalty),
    presencePenalty: numberOf(config.presencePenalty),
    seed: numberOf(config.seed),
    choices: numberOf(config.candidateCount),
    stop: filled(textsOf(listOf(config.stopSequences))),
  });
}

function decodeFormat({
  responseMimeType,
  responseSchema,
  responseJsonSchema,
}: JsonObject): ResponseFormat | undefined {
  const type = nonEmptyText(responseMimeType);
  if (type === undefined || type === "text/plain") return undefined;
  if (type !== "application/json") {
    throw invalidField(
      "generationConfig.responseMimeType",
      `this model's backend has no form ${type.slice(0, 80)}; ask for application/json.`,
    );
  }
  const isJsonSchema = isObject(responseJsonSchema);
  if (!isJsonSchema && !isObject(responseSchema)) return { type: "json" };
  const schema = isJsonSchema ? responseJsonSchema : decodeSchema(responseSchema);
  return { type: "json-schema", name: SCHEMA_NAME, schema };
}

function decodeExtensions(body: JsonObject, members: JsonObject, config: JsonObject): JsonObject {
  const extensions: JsonObject = {};
  for (const [name, value] of Object.entries(body)) {
    if (!KNOWN_MEMBERS.has(camelCase(name)) && isPresent(value)) extensions[name] = value;
  }
  for (const [name, value] of Object.entries(config)) {
    if (!KNOWN_CONFIG.has(name) && isPresent(value)) extensions[`generationConfig.${name}`] = value;
  }
  const modalities = textsOf(listOf(config.responseModalities));
  if (modalities.length > 1) extensions["generationConfig.responseModalities"] = modalities;
  const retrieval = inCamelCase(isObject(members.toolConfig) ? members.toolConfig : {}).retrievalConfig;
  if (isPresent(retrieval)) extensions["toolConfig.retrievalConfig"] = retrieval;
  for (const name of ownMembersOfTools(body)) extensions[`functionDeclarations.${name}`] = true;
  const parts = objectsIn(body.contents).flatMap(({ parts: list }) => objectsIn(list));
  for (const [name, snake] of HINTS) {
    if (parts.some((part) => isPresent(either(part, name, snake)))) extensions[`parts.${name}`] = true;
  }
  return extensions;
}
