// Validation of a Messages request (wire format: the Messages API, versions 2023-06-01 and 2026-10-21).
// Unknown fields and blocks pass: a native backend is the better judge of them.

import { isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import {
  checkArray,
  checkBoolean,
  checkNumbers,
  checkObject,
  describe,
  invalidField,
  missingField,
  NO_MAXIMUM,
  type NumberRule,
  requireModel,
  wrongType,
} from "../fields.ts";
import { arrayOf, nonEmptyText, objectOf } from "../reading.ts";
import { conversationStart, type RequestSummary } from "../request-summary.ts";

const NUMBERS: readonly NumberRule[] = [
  { field: "max_tokens", minimum: 0, maximum: NO_MAXIMUM, integer: true },
  { field: "temperature", minimum: 0, maximum: 1 },
  { field: "top_p", minimum: 0, maximum: 1 },
  { field: "top_k", minimum: 0, maximum: NO_MAXIMUM, integer: true },
];

const OBJECTS = ["metadata", "thinking", "tool_choice", "output_config"] as const;

const ROLES: ReadonlySet<unknown> = new Set(["user", "assistant", "system"]);

export function readMessagesRequest(body: JsonObject): RequestSummary {
  const model = requireModel(body);
  if (!isPresent(body.max_tokens)) throw missingField("max_tokens", "the most tokens that the answer may have.");
  checkNumbers(body, NUMBERS);
  const stream = checkBoolean(body, "stream");
  checkConversation(body);
  return { model, stream, choices: 1, affinity: conversationOf };
}

/** A request to count tokens: a Messages request that asks for no answer. */
export function readCountTokensRequest(body: JsonObject): { model: string } {
  const model = requireModel(body);
  checkNumbers(body, NUMBERS);
  checkConversation(body);
  return { model };
}

function checkConversation(body: JsonObject): void {
  if (isPresent(body.system)) checkContent(body.system, "system");
  // A thread of the vendor's may go on without a new message.
  if (!isObject(body.thread) || !Array.isArray(body.messages) || body.messages.length > 0) checkMessages(body.messages);
  checkTools(body);
  checkStopSequences(body);
  for (const field of OBJECTS) checkObject(body, field);
  const { tool_choice: choice } = body;
  if (isObject(choice) && typeof choice.type !== "string") {
    throw wrongType("tool_choice.type", "auto, any, tool or none", choice.type);
  }
}

function checkMessages(messages: unknown): void {
  if (!isPresent(messages)) throw missingField("messages", "an array of {role, content} objects.");
  if (!Array.isArray(messages)) throw wrongType("messages", "an array", messages);
  if (messages.length === 0) throw invalidField("messages", "must hold at least one message.");
  for (let index = 0; index < messages.length; index++) checkMessage(messages[index], `messages[${index}]`);
}

function checkMessage(message: unknown, path: string): void {
  if (!isObject(message)) throw wrongType(path, "an object", message);
  const { role, content } = message;
  if (role === undefined) throw missingField(`${path}.role`, "user, assistant or system.");
  if (!ROLES.has(role)) {
    const got = typeof role === "string" ? `"${role.slice(0, 32)}"` : describe(role);
    throw invalidField(`${path}.role`, `expected user, assistant or system, got ${got}.`);
  }
  if (!isPresent(content)) throw missingField(`${path}.content`, "a string or an array of content blocks.");
  checkContent(content, `${path}.content`);
}

function checkContent(content: unknown, path: string): void {
  if (typeof content === "string") return;
  if (!Array.isArray(content)) throw wrongType(path, "a string or an array of content blocks", content);
  for (let index = 0; index < content.length; index++) {
    const block: unknown = content[index];
    if (!isObject(block)) throw wrongType(`${path}[${index}]`, "an object", block);
    checkBlock(block, `${path}[${index}]`);
  }
}

/** The members without which a block means nothing. */
const REQUIRED_TEXTS: Record<string, readonly string[]> = {
  text: ["text"],
  tool_use: ["id", "name"],
  tool_result: ["tool_use_id"],
};

function checkBlock(block: JsonObject, path: string): void {
  if (typeof block.type !== "string") throw invalidField(`${path}.type`, 'expected a block type such as "text".');
  const required = Object.hasOwn(REQUIRED_TEXTS, block.type) ? REQUIRED_TEXTS[block.type] : undefined;
  for (const field of required ?? []) {
    if (typeof block[field] !== "string") throw wrongType(`${path}.${field}`, "a string", block[field] ?? null);
  }
}

function checkTools(body: JsonObject): void {
  checkArray(body, "tools");
  for (const [index, tool] of arrayOf(body.tools).entries()) {
    if (!isObject(tool)) throw wrongType(`tools[${index}]`, "an object", tool);
    const isCustom = !isPresent(tool.type) || tool.type === "custom";
    if (isCustom && (typeof tool.name !== "string" || tool.name === "")) {
      throw missingField(`tools[${index}].name`, "the name of the tool.");
    }
    if (isCustom && !isObject(tool.input_schema)) {
      throw invalidField(`tools[${index}].input_schema`, "expected a JSON Schema of the tool's input.");
    }
  }
}

function checkStopSequences(body: JsonObject): void {
  checkArray(body, "stop_sequences");
  const index = arrayOf(body.stop_sequences).findIndex((entry) => typeof entry !== "string");
  if (index >= 0) throw invalidField(`stop_sequences[${index}]`, "expected a string.");
}

function conversationOf(body: JsonObject): string | undefined {
  const { system, messages, metadata } = body;
  // Claude Code names its session here, other clients their user.
  const id = nonEmptyText(objectOf(metadata).user_id);
  return id ?? conversationStart(arrayOf(messages), system === undefined ? [] : [JSON.stringify(system)]);
}
