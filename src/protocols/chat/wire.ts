// Members of the chat format that are not OpenAI's own.
//
// Extensions that Signalbox writes to chat clients and reads back when they replay an answer:
//   message.reasoning_content                            what the model thought, as text
//   message.reasoning_details[]                          thoughts with their proof of origin (reasoning-details.ts)
//   message.tool_calls[].extra_content.google.thought_signature   Gemini's signature of a call; also on a message
//   {role: "tool", is_error: true}                       the tool failed
//   message.images[]                                     images that the model made, as image_url parts

import { ERRORS } from "../../errors/catalog.ts";
import { GatewayError } from "../../errors/gateway-error.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { nonEmptyText } from "../reading.ts";

/** Begins the text of a failed tool's result: the form of is_error that every backend's model can read. */
const TOOL_ERROR_PREFIX = "[tool error]";

export function markToolError(text: string): string {
  return text === "" ? TOOL_ERROR_PREFIX : `${TOOL_ERROR_PREFIX} ${text}`;
}

/** The text behind the mark of a failed tool; undefined when there is no mark. */
export function textOfToolError(text: string): string | undefined {
  if (!text.startsWith(TOOL_ERROR_PREFIX)) return undefined;
  const rest = text.slice(TOOL_ERROR_PREFIX.length);
  return rest.startsWith(" ") ? rest.slice(1) : rest;
}

export function thoughtSignature(signature: string): JsonObject {
  return { google: { thought_signature: signature } };
}

/** The signature inside an extra_content member. */
export function readThoughtSignature(holder: JsonObject): string | undefined {
  const { extra_content } = holder;
  if (!isObject(extra_content) || !isObject(extra_content.google)) return undefined;
  return nonEmptyText(extra_content.google.thought_signature);
}

/** The refusal of what a chat backend, or this kind of it, has no words for. */
export function unsupported(param: string, message: string): GatewayError {
  return new GatewayError(ERRORS.unsupportedOperation, `${param}: ${message}`, { param });
}
