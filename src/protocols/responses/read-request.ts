// Validation of a Responses request.
// Unknown fields, items and tools pass: a backend that speaks this format is the better judge of them.

import { isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import {
  checkArray,
  checkBoolean,
  checkNumbers,
  checkObject,
  checkString,
  invalidField,
  missingField,
  NO_MAXIMUM,
  type NumberRule,
  requireModel,
  wrongType,
  wrongWord,
} from "../fields.ts";
import { affinityOf, conversationStart, MAX_TURN_LENGTH, type RequestSummary } from "../request-summary.ts";
import { checkInput } from "./check-input.ts";

const NUMBERS: readonly NumberRule[] = [
  { field: "temperature", minimum: 0, maximum: 2 },
  { field: "top_p", minimum: 0, maximum: 1 },
  { field: "max_output_tokens", minimum: 1, maximum: NO_MAXIMUM, integer: true },
  { field: "max_tool_calls", minimum: 0, maximum: NO_MAXIMUM, integer: true },
  { field: "top_logprobs", minimum: 0, maximum: 20, integer: true },
];

const STRINGS = [
  "instructions",
  "previous_response_id",
  "user",
  "safety_identifier",
  "prompt_cache_key",
  "service_tier",
] as const;

const BOOLEANS = ["parallel_tool_calls", "store", "background", "include_reasoning"] as const;

const OBJECTS = ["reasoning", "text", "metadata", "stream_options", "prompt"] as const;

/** The efforts of all formats, and the public API's none and minimal. */
const EFFORTS: readonly unknown[] = ["auto", "low", "medium", "high", "xhigh", "none", "minimal"];

const TOOL_CHOICES: readonly string[] = ["auto", "none", "required"];

export function readResponsesRequest(body: JsonObject): RequestSummary {
  const model = requireModel(body);
  checkInput(body.input);
  checkNumbers(body, NUMBERS);
  const stream = checkBoolean(body, "stream");
  for (const field of STRINGS) checkString(body, field);
  for (const field of BOOLEANS) checkBoolean(body, field);
  for (const field of OBJECTS) checkObject(body, field);
  checkInclude(body);
  checkConversation(body);
  checkEffort(body.reasoning);
  checkTools(body);
  checkToolChoice(body.tool_choice);
  return { model, stream, choices: 1, affinity: conversationOf };
}

function checkInclude(body: JsonObject): void {
  checkArray(body, "include");
  if (!Array.isArray(body.include)) return;
  const index = body.include.findIndex((entry) => typeof entry !== "string");
  if (index >= 0) throw wrongType(`include[${index}]`, "a string", body.include[index]);
}

/** conversation is an id or {id}, and excludes previous_response_id. */
function checkConversation({ conversation, previous_response_id: previous }: JsonObject): void {
  if (!isPresent(conversation)) return;
  if (typeof conversation !== "string" && !isObject(conversation)) {
    throw wrongType("conversation", "an id or an object with an id", conversation);
  }
  if (typeof previous === "string") {
    throw invalidField("previous_response_id", "cannot be used together with conversation.");
  }
}

function checkEffort(reasoning: unknown): void {
  if (!isObject(reasoning)) return;
  const { effort } = reasoning;
  if (isPresent(effort) && !EFFORTS.includes(effort)) throw wrongWord("reasoning.effort", EFFORTS, effort);
}

function checkTools(body: JsonObject): void {
  checkArray(body, "tools");
  if (!Array.isArray(body.tools)) return;
  for (let index = 0; index < body.tools.length; index++) checkTool(body.tools[index], `tools[${index}]`);
}

/** Also for the tools that an additional_tools item brings. */
export function checkTool(tool: unknown, path: string): void {
  if (!isObject(tool)) throw wrongType(path, "an object", tool);
  if (tool.type === undefined) throw missingField(`${path}.type`, 'such as "function" or "web_search".');
  if (typeof tool.type !== "string") throw wrongType(`${path}.type`, "a string", tool.type);
  if (tool.type !== "function" && tool.type !== "custom") return;
  if (isObject(tool.function)) {
    throw invalidField(
      `${path}.function`,
      "the nested form of chat completions is not accepted here; put name, description and parameters beside type.",
    );
  }
  if (typeof tool.name !== "string" || tool.name === "") {
    throw missingField(`${path}.name`, "the name under which the model calls the tool.");
  }
  checkString(tool, "description", path);
  checkObject(tool, "parameters", path);
  checkBoolean(tool, "strict", path);
}

function checkToolChoice(choice: unknown): void {
  if (!isPresent(choice)) return;
  if (typeof choice === "string") {
    if (TOOL_CHOICES.includes(choice)) return;
    throw invalidField(
      "tool_choice",
      `expected ${TOOL_CHOICES.join(", ")} or an object, got ${JSON.stringify(choice)}.`,
    );
  }
  if (!isObject(choice)) throw wrongType("tool_choice", "a string or an object", choice);
  if (typeof choice.type !== "string") throw missingField("tool_choice.type", 'such as "function".');
  if ((choice.type === "function" || choice.type === "custom") && typeof choice.name !== "string") {
    throw missingField("tool_choice.name", "the name of the tool, beside type.");
  }
}

/** A reference to an earlier answer tells the conversation best, where the answers are kept by the backend. */
function conversationOf(body: JsonObject): string | undefined {
  const { conversation, input, instructions, previous_response_id: previous } = body;
  const named = affinityOf(body) ?? (typeof previous === "string" ? previous : undefined);
  if (named !== undefined) return named;
  if (isObject(conversation) || typeof conversation === "string") return JSON.stringify(conversation);
  const start = typeof instructions === "string" ? [instructions] : [];
  if (Array.isArray(input)) return conversationStart(input, start);
  return [...start, input as string].map((text) => text.slice(0, MAX_TURN_LENGTH)).join("\n");
}
