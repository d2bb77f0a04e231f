// Validation of a generateContent request (wire format: Google's generateContent, version v1beta). The model and whether it
// streams stand in the path. Unknown fields and parts pass: a native backend is the better judge of them.

import { isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import {
  checkNumbers,
  checkObject,
  describe,
  invalidField,
  missingField,
  NO_MAXIMUM,
  type NumberRule,
  wrongType,
} from "../fields.ts";
import { nonEmptyText } from "../reading.ts";
import { conversationStart, type RequestSummary } from "../request-summary.ts";
import { either, generationConfigOf, listOf } from "./members.ts";

const NUMBERS: readonly (NumberRule & { camel: string; snake: string })[] = [
  numberRule("temperature", "temperature", 0, 2),
  numberRule("topP", "top_p", 0, 1),
  numberRule("topK", "top_k", 0, NO_MAXIMUM),
  numberRule("candidateCount", "candidate_count", 1, 8, true),
  numberRule("maxOutputTokens", "max_output_tokens", 1, NO_MAXIMUM, true),
];

function numberRule(camel: string, snake: string, minimum: number, maximum: number, integer = false) {
  return { field: `generationConfig.${camel}`, camel, snake, minimum, maximum, integer };
}

/** "function" is what results of calls were sent as before. */
const ROLES: ReadonlySet<unknown> = new Set(["user", "model", "function"]);

/** The id of a model as the path names it. */
export function modelIn(path: string): string {
  const model = path.startsWith("models/") ? path.slice("models/".length) : path;
  if (model === "") throw invalidField("model", "must not be empty; GET /v1beta/models lists the models.");
  return model;
}

/** @param path - the model as the path names it */
export function readContentRequest(body: JsonObject, path: string, stream: boolean): RequestSummary {
  const model = modelIn(path);
  checkConversation(body);
  const choices = numberNamed(generationConfigOf(body), "candidateCount", "candidate_count") ?? 1;
  return { model, stream, choices, affinity: conversationOf };
}

/** Of a request that is answered with numbers. */
export function countingSummary(model: string): RequestSummary {
  return { model, stream: false, choices: 1, affinity: () => undefined };
}

/** What counting tokens and an answer have in common. */
export function checkConversation(body: JsonObject): void {
  if (!isPresent(body.contents)) throw missingField("contents", "an array of {role, parts} objects.");
  const contents = listOf(body.contents);
  if (contents.length === 0) throw invalidField("contents", "must hold at least one content.");
  const isList = Array.isArray(body.contents);
  for (let index = 0; index < contents.length; index++) {
    checkContent(contents[index], isList ? `contents[${index}]` : "contents");
  }
  checkConfig(body);
  for (const [index, tool] of listOf(body.tools).entries()) {
    if (!isObject(tool)) throw wrongType(`tools[${index}]`, "an object", tool);
    checkDeclarations(tool, index);
  }
  for (const field of ["toolConfig", "tool_config"]) checkObject(body, field);
  const instruction = either(body, "systemInstruction", "system_instruction");
  if (isPresent(instruction) && typeof instruction !== "string" && !isObject(instruction)) {
    throw wrongType("systemInstruction", "a content with parts", instruction);
  }
}

export function checkContent(content: unknown, path: string): void {
  if (!isObject(content)) throw wrongType(path, "an object with parts", content);
  const { role, parts } = content;
  if (isPresent(role) && role !== "" && !ROLES.has(role)) {
    const got = typeof role === "string" ? `"${role.slice(0, 32)}"` : describe(role);
    throw invalidField(`${path}.role`, `expected user or model, got ${got}.`);
  }
  for (const [place, part] of listOf(parts).entries()) {
    if (!isObject(part)) throw wrongType(`${path}.parts[${place}]`, "an object such as {text}", part);
    if (isPresent(part.text) && typeof part.text !== "string") {
      throw wrongType(`${path}.parts[${place}].text`, "a string", part.text);
    }
  }
}

function checkConfig(body: JsonObject): void {
  for (const field of ["generationConfig", "generation_config"]) checkObject(body, field);
  const config = generationConfigOf(body);
  for (const rule of NUMBERS) {
    const value = either(config, rule.camel, rule.snake);
    if (isPresent(value)) checkNumbers({ [rule.field]: value }, [rule]);
  }
  const stops = listOf(either(config, "stopSequences", "stop_sequences"));
  const wrong = stops.findIndex((entry) => typeof entry !== "string");
  if (wrong >= 0) throw wrongType(`generationConfig.stopSequences[${wrong}]`, "a string", stops[wrong]);
  const thinking = either(config, "thinkingConfig", "thinking_config");
  if (isPresent(thinking) && !isObject(thinking))
    throw wrongType("generationConfig.thinkingConfig", "an object", thinking);
}

function checkDeclarations(tool: JsonObject, index: number): void {
  const declarations = listOf(either(tool, "functionDeclarations", "function_declarations"));
  for (const [place, declaration] of declarations.entries()) {
    const path = `tools[${index}].functionDeclarations[${place}]`;
    if (!isObject(declaration)) throw wrongType(path, "an object", declaration);
    if (nonEmptyText(declaration.name) === undefined) throw missingField(`${path}.name`, "the name of the function.");
  }
}

function numberNamed(object: JsonObject, camel: string, snake: string): number | undefined {
  const value = either(object, camel, snake);
  return typeof value === "number" ? value : undefined;
}

/** A content without a role is the user's. */
function conversationOf(body: JsonObject): string | undefined {
  const turns = listOf(body.contents).map((content) =>
    isObject(content) && !isPresent(content.role) ? { role: "user", ...content } : content,
  );
  const system = either(body, "systemInstruction", "system_instruction");
  return conversationStart(turns, isPresent(system) ? [JSON.stringify(system)] : []);
}
