// Validation of a chat completion request.
// Unknown fields pass: the client's own bytes go to the backend, which is the better judge of them.

import { isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import {
  checkArray,
  checkBoolean,
  checkNumbers,
  checkObject,
  checkStop,
  checkString,
  invalidField,
  missingField,
  NO_MAXIMUM,
  type NumberRule,
  requireModel,
  SAMPLING_NUMBERS,
  wrongType,
} from "../fields.ts";
import { affinityOf, conversationStart, type RequestSummary } from "../request-summary.ts";

const NUMBERS: readonly NumberRule[] = [
  ...SAMPLING_NUMBERS,
  { field: "max_tokens", minimum: 1, maximum: NO_MAXIMUM, integer: true },
  { field: "max_completion_tokens", minimum: 1, maximum: NO_MAXIMUM, integer: true },
  { field: "top_logprobs", minimum: 0, maximum: 20, integer: true },
];

export function readChatRequest(body: JsonObject): RequestSummary {
  const model = requireModel(body);
  checkMessages(body.messages);
  checkNumbers(body, NUMBERS);
  const stream = checkBoolean(body, "stream");
  checkObject(body, "stream_options");
  checkStop(body);
  checkObject(body, "logit_bias");
  checkString(body, "user");
  checkArray(body, "tools");
  checkString(body, "reasoning_effort");
  checkReasoning(body);
  return {
    model,
    stream,
    choices: typeof body.n === "number" ? body.n : 1,
    affinity: conversationOf,
  };
}

function checkMessages(messages: unknown): void {
  if (!isPresent(messages)) throw missingField("messages", "an array of {role, content} objects.");
  if (!Array.isArray(messages)) throw wrongType("messages", "an array", messages);
  if (messages.length === 0) throw invalidField("messages", "must hold at least one message.");
  for (let index = 0; index < messages.length; index++) {
    const message: unknown = messages[index];
    if (!isObject(message)) throw wrongType(`messages[${index}]`, "an object", message);
    const { role, content } = message;
    if (role === undefined) throw missingField(`messages[${index}].role`, "such as system, user, assistant or tool.");
    if (typeof role !== "string" || role === "") {
      throw wrongType(`messages[${index}].role`, 'a role such as "user"', role);
    }
    if (!isPresent(content)) {
      // An assistant turn may consist of tool calls, a refusal or audio alone; other roles say something.
      if (role === "assistant") continue;
      throw missingField(`messages[${index}].content`, "a string or an array of content parts.");
    }
    if (typeof content !== "string") checkParts(content, `messages[${index}].content`);
  }
}

function checkParts(content: unknown, path: string): void {
  if (!Array.isArray(content)) throw wrongType(path, "a string or an array of content parts", content);
  for (let index = 0; index < content.length; index++) {
    const part: unknown = content[index];
    if (!isObject(part)) throw wrongType(`${path}[${index}]`, "an object", part);
    if (typeof part.type !== "string")
      throw invalidField(`${path}[${index}].type`, 'expected a part type such as "text".');
  }
}

function checkReasoning(body: JsonObject): void {
  checkObject(body, "reasoning");
  if (isObject(body.reasoning)) checkString(body.reasoning, "effort", "reasoning");
}

function conversationOf(body: JsonObject): string | undefined {
  return affinityOf(body) ?? conversationStart(body.messages as unknown[]);
}
