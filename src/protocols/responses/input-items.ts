// The items of a request -> instructions and messages. Neighbouring items of the assistant are one turn, and neighbouring
// outputs of tools are one message, whatever order and number the client wrote them in.

import type { ContentPart, Message, ReasoningPart, TextPart, ToolCallPart } from "../../generation/content.ts";
import type { Tool } from "../../generation/tools.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import { invalidField } from "../fields.ts";
import { nonEmptyText, objectsOf, textOf } from "../reading.ts";
import { decodeContent, decodeOutputContent } from "./input-parts.ts";
import { flatName, toolsOfItem } from "./namespaces.ts";
import { thoughtsOf } from "./output-decoder.ts";
import { checkTool } from "./read-request.ts";
import { openSealToken } from "./reasoning-seal.ts";
import { decodeTools } from "./tools.ts";
import { isItemReference } from "./wire.ts";

export interface Conversation {
  /** Instructions before the first item of another role. */
  system: TextPart[];
  messages: Message[];
  /** Tools that items bring. */
  tools: Tool[];
}

/** For an input that check-input.ts has checked. */
export function decodeInput(input: unknown): Conversation {
  const conversation: Conversation = { system: [], messages: [], tools: [] };
  if (typeof input === "string") {
    conversation.messages.push({ role: "user", parts: [{ type: "text", text: input }] });
    return conversation;
  }
  for (const [index, item] of objectsOf(input).entries()) decodeItem(item, `input[${index}]`, conversation);
  return conversation;
}

function decodeItem(item: JsonObject, param: string, conversation: Conversation): void {
  if (isItemReference(item)) {
    throw invalidField(`${param}.id`, `no item ${JSON.stringify(item.id)} is kept here; send the item itself.`);
  }
  switch (item.type) {
    case undefined:
    case null:
    case "message":
      decodeMessage(item, param, conversation);
      return;
    case "additional_tools":
      conversation.tools.push(...decodeBroughtTools(item, param));
      return;
    case "tool_search_output":
      conversation.tools.push(...decodeBroughtTools(item, param));
      pushToTurn(conversation.messages, [decodeTurnItem(item, param)]);
      return;
    case "function_call_output":
    case "custom_tool_call_output":
      pushToolResult(conversation.messages, {
        type: "tool-result",
        callId: textOf(item.call_id),
        parts: decodeOutputContent(item.output, `${param}.output`),
      });
      return;
    default:
      pushToTurn(conversation.messages, [decodeTurnItem(item, param)]);
  }
}

/** An item of the assistant's other than a message. */
function decodeTurnItem(item: JsonObject, param: string): ContentPart {
  switch (item.type) {
    case "reasoning":
      return decodeReasoning(item, param);
    case "function_call":
      return { ...decodeCall(item), arguments: textOf(item.arguments) };
    case "custom_tool_call":
      return { ...decodeCall(item), arguments: textOf(item.input), custom: true };
    case "compaction":
      throw invalidField(
        `${param}.type`,
        "only the service that compacted the conversation can read it; start again or send the items themselves.",
      );
    default:
      // Of hosted tools, for the most part: what they found is in the text that follows.
      return { type: "opaque", protocol: "responses", value: item };
  }
}

function decodeCall(item: JsonObject): ToolCallPart {
  const itemId = nonEmptyText(item.id);
  return compact({ type: "tool-call", id: textOf(item.call_id), name: flatName(item), arguments: "", itemId });
}

function decodeMessage(item: JsonObject, param: string, { system, messages }: Conversation): void {
  const parts = decodeContent(item.content, `${param}.content`);
  switch (item.role) {
    case "assistant":
      pushToTurn(messages, parts);
      return;
    case "user":
      messages.push({ role: "user", parts });
      return;
    default: {
      const texts = parts.map((part, index) => instruction(part, `${param}.content[${index}]`));
      if (messages.length === 0) system.push(...texts);
      else messages.push({ role: "system", parts: texts });
    }
  }
}

function instruction(part: ContentPart, param: string): TextPart {
  if (part.type === "text") return part;
  throw invalidField(`${param}.type`, "instructions of the system and the developer are text.");
}

function decodeBroughtTools(item: JsonObject, param: string): Tool[] {
  const given = Array.isArray(item.tools) ? item.tools : [];
  for (const [index, tool] of given.entries()) checkTool(tool, `${param}.tools[${index}]`);
  return decodeTools(toolsOfItem(item), `${param}.tools`);
}

function decodeReasoning(item: JsonObject, param: string): ReasoningPart {
  const encrypted = nonEmptyText(item.encrypted_content);
  const { text = thoughtsOf(item), ...proof } =
    encrypted === undefined ? {} : openSealToken(encrypted, `${param}.encrypted_content`);
  return compact({ type: "reasoning", text, ...proof, itemId: nonEmptyText(item.id) });
}

function pushToTurn(messages: Message[], parts: ContentPart[]): void {
  const last = messages.at(-1);
  if (last?.role === "assistant") last.parts.push(...parts);
  else messages.push({ role: "assistant", parts });
}

function pushToolResult(messages: Message[], part: ContentPart): void {
  const last = messages.at(-1);
  if (last?.role === "user" && last.parts.at(-1)?.type === "tool-result") last.parts.push(part);
  else messages.push({ role: "user", parts: [part] });
}
