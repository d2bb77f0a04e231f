// Chat requests for a vendor that refuses some of the format: what is taken out, renamed or said in another way.

import { isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import type { VendorRules } from "../../presets.ts";
import type { Adapted } from "../protocol.ts";

/** Undefined when the request can go as it is. */
export function adaptToVendor(body: JsonObject, rules: VendorRules, model: string): Adapted | undefined {
  const members: JsonObject = {};
  const lost: string[] = [];
  for (const member of refusedMembers(rules, model)) {
    if (body[member] === undefined) continue;
    members[member] = undefined;
    if (isPresent(body[member]) && member !== "stream_options") lost.push(member);
  }
  for (const [member, name] of Object.entries(rules.renamed ?? {})) {
    if (body[member] === undefined) continue;
    members[member] = undefined;
    members[name] = body[name] ?? body[member];
  }
  if (rules.thinkingSwitch === true && body.reasoning_effort === "none") {
    members.reasoning_effort = undefined;
    members.thinking = { type: "disabled" };
  }
  const schema = rules.noSchemas === true ? schemaOf(body) : undefined;
  if (schema !== undefined) {
    members.response_format = { type: "json_object" };
    lost.push("response_format.json_schema");
  }
  const messages = adaptMessages(body.messages, rules);
  if (schema !== undefined && Array.isArray(body.messages)) {
    members.messages = [schemaMessage(schema), ...(messages ?? body.messages)];
  } else if (messages !== undefined) members.messages = messages;
  return Object.keys(members).length === 0 ? undefined : { members, lost };
}

function refusedMembers({ refused = [], refusedOf }: VendorRules, model: string): readonly string[] {
  return refusedOf?.[0].test(model) ? [...refused, ...refusedOf[1]] : refused;
}

// ---- Schemas

function schemaOf({ response_format }: JsonObject): unknown {
  if (!isObject(response_format) || response_format.type !== "json_schema") return undefined;
  return isObject(response_format.json_schema) ? (response_format.json_schema.schema ?? {}) : undefined;
}

/** In front of all others, so that it stays the same while the conversation grows. */
function schemaMessage(schema: unknown): JsonObject {
  return {
    role: "system",
    content: `Answer with one JSON object that conforms to this JSON Schema: ${JSON.stringify(schema)}`,
  };
}

// ---- Messages

/** Undefined when none has to change. */
function adaptMessages(messages: unknown, rules: VendorRules): unknown[] | undefined {
  if (!Array.isArray(messages)) return undefined;
  let adapted: unknown[] | undefined;
  for (const [index, message] of messages.entries()) {
    const changed = isObject(message) ? adaptMessage(message, rules) : undefined;
    if (changed === undefined) continue;
    adapted ??= [...messages];
    adapted[index] = changed;
  }
  return adapted;
}

function adaptMessage(message: JsonObject, rules: VendorRules): JsonObject | undefined {
  const changes: JsonObject = {};
  for (const member of rules.refusedInMessages ?? []) if (message[member] !== undefined) changes[member] = undefined;
  const text = rules.plainText === true ? joinedTexts(message.content) : undefined;
  if (text !== undefined) changes.content = text;
  if (rules.shortCallIds === true) Object.assign(changes, withShortIds(message));
  const { thoughts } = rules;
  if (rules.wantsThoughts === true && thoughts !== undefined && message.role === "assistant" && !message[thoughts]) {
    // The vendor refuses the member's absence and, in some versions, an empty text.
    changes[thoughts] = " ";
  }
  if (Object.keys(changes).length === 0) return undefined;
  return Object.fromEntries(Object.entries({ ...message, ...changes }).filter(([, value]) => value !== undefined));
}

/** Undefined for a content that is no list of texts alone. */
function joinedTexts(content: unknown): string | undefined {
  if (!Array.isArray(content)) return undefined;
  const texts = content.map((part: unknown) => (isObject(part) && part.type === "text" ? part.text : undefined));
  return texts.every((text) => typeof text === "string") ? texts.join("\n\n") : undefined;
}

function withShortIds({ tool_call_id, tool_calls }: JsonObject): JsonObject {
  const changes: JsonObject = {};
  if (typeof tool_call_id === "string" && shortId(tool_call_id) !== tool_call_id) {
    changes.tool_call_id = shortId(tool_call_id);
  }
  const isLong = (call: unknown) => isObject(call) && typeof call.id === "string" && shortId(call.id) !== call.id;
  if (Array.isArray(tool_calls) && tool_calls.some(isLong)) {
    changes.tool_calls = tool_calls.map((call: unknown) =>
      isLong(call) ? { ...(call as JsonObject), id: shortId((call as JsonObject).id as string) } : call,
    );
  }
  return changes;
}

const SHORT_ID = /^[A-Za-z0-9]{9}$/;

/** The id itself where the vendor takes it; else nine letters and digits that follow from it, so that call and result agree. */
function shortId(id: string): string {
  return SHORT_ID.test(id) ? id : Bun.hash(id).toString(36).padStart(9, "0").slice(-9);
}
