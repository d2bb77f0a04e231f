// Counting the input tokens of a request: what is asked, and an estimate for backends that cannot count.

import { IMAGE_TOKENS } from "../../generation/token-facts.ts";
import { isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import { wrongType } from "../fields.ts";
import { textOf } from "../reading.ts";
import type { RequestSummary } from "../request-summary.ts";
import {
  jsonTokens,
  pageTokens,
  TOKENS_FOR_TOOLS,
  TOKENS_PER_BLOCK,
  TOKENS_PER_TOOL,
  TOKENS_PER_TURN,
  textTokens,
} from "../token-estimate.ts";
import { mediaTypeOf } from "./content-decoder.ts";
import { either, eitherObject, listOf, objectsIn } from "./members.ts";
import { checkConversation, countingSummary, modelIn } from "./read-request.ts";

/** A request holds contents alone, or a whole generateContent request. */
export function readCountRequest(body: JsonObject, path: string): RequestSummary {
  const model = modelIn(path);
  checkConversation(countedIn(body));
  return countingSummary(model);
}

function countedIn(body: JsonObject): JsonObject {
  const inner = either(body, "generateContentRequest", "generate_content_request");
  if (!isPresent(inner)) return body;
  if (!isObject(inner)) throw wrongType("generateContentRequest", "an object", inner);
  return inner;
}

/** What the client gets where no backend counts. */
export function estimatedCount(body: JsonObject): JsonObject {
  return { totalTokens: estimateInputTokens(countedIn(body)) };
}

function estimateInputTokens(body: JsonObject): number {
  const instruction = either(body, "systemInstruction", "system_instruction");
  let tokens = TOKENS_PER_TURN + (isObject(instruction) ? partsTokens(instruction) : textTokens(textOf(instruction)));
  for (const content of objectsIn(body.contents)) tokens += TOKENS_PER_TURN + partsTokens(content);
  const declarations = objectsIn(body.tools).flatMap((tool) =>
    listOf(either(tool, "functionDeclarations", "function_declarations")),
  );
  if (declarations.length > 0) tokens += TOKENS_FOR_TOOLS;
  for (const declaration of declarations) tokens += TOKENS_PER_TOOL + jsonTokens(declaration);
  const config = eitherObject(body, "generationConfig", "generation_config");
  const schema = either(config, "responseJsonSchema", "response_json_schema");
  tokens += jsonTokens(schema ?? either(config, "responseSchema", "response_schema"));
  return Math.ceil(tokens);
}

function partsTokens({ parts }: JsonObject): number {
  return objectsIn(parts).reduce((sum, part) => sum + TOKENS_PER_BLOCK + partTokens(part), 0);
}

function partTokens(part: JsonObject): number {
  if (typeof part.text === "string") return textTokens(part.text);
  const data = either(part, "inlineData", "inline_data");
  if (isObject(data)) return fileTokens(mediaTypeOf(data) ?? "", textOf(data.data));
  const file = either(part, "fileData", "file_data");
  if (isObject(file)) return fileTokens(mediaTypeOf(file) ?? "", "");
  const result = either(part, "functionResponse", "function_response");
  if (isObject(result)) return TOKENS_PER_TOOL + jsonTokens(result.response) + partsTokens(result);
  const call = either(part, "functionCall", "function_call");
  return isObject(call) ? TOKENS_PER_TOOL + jsonTokens(call) : jsonTokens(part);
}

function fileTokens(mediaType: string, base64: string): number {
  if (mediaType.startsWith("text/")) return textTokens(Buffer.from(base64, "base64").toString("utf8"));
  return mediaType === "application/pdf" ? pageTokens(base64) : IMAGE_TOKENS.usual;
}
