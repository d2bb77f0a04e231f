// What a chat backend may understand of the format, as data; the kinds of backends begin with one of these and say what
// differs (backends/kinds.ts). Read by the encoder of translated requests, and by adaptChatBody for requests that pass as
// they are. Sources: the engines' own documents.

import { originalCallIds } from "../../generation/tool-call-ids.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import type { VendorRules } from "../../presets.ts";
import { cannotRequire, fitToolChoice, parseToolChoice, type ToolChoiceSupport, wireToolName } from "./tools.ts";
import { markToolError } from "./wire.ts";

export interface ChatQuirks {
  /** The field for the most output tokens in a translated request. */
  outputLimit: "max_tokens" | "max_completion_tokens";
  /** Knows max_tokens only: a client's max_completion_tokens is renamed. */
  isOldLimit: boolean;
  /** The role "developer" is known. */
  developerRole: boolean;
  /** OpenAI's own members of a request that a translation leaves out; a client's own body keeps them. */
  leftOut: readonly string[];
  /** Members of a request, beyond those every chat backend knows, that a translation may send. */
  extras: ReadonlySet<string>;
  toolChoice: ToolChoiceSupport;
  customTools: boolean;
  files: boolean;
  audio: boolean;
  video: boolean;
  /** response_format json_object is known; else a schema that allows any object takes its place. */
  jsonObject: boolean;
  /** The members for earlier thoughts; some versions of an engine read only one of them. */
  reasoning: readonly ("reasoning" | "reasoning_content")[];
  /** In requests that pass as they are, thoughts told in one member are repeated in the others. */
  mirrorsReasoning: boolean;
  /** Ids of tool calls are unique across a conversation, and are not rewritten. */
  uniqueCallIds: boolean;
  /** Members of messages that only gateways know are taken out of requests that pass. */
  isStrict: boolean;
  /** Several texts of a message become one: chat templates of local models often take nothing else. */
  joinsText: boolean;
  /** message.refusal is known, and a null content. */
  refusals: boolean;
  /** Counts the tokens of a stream when it is asked to; others might refuse what they do not know. */
  countsStreams: boolean;
  /** A gateway of this kind: it undoes itself what this one has written into the messages of earlier answers. */
  isGateway: boolean;
  /** What a vendor refuses besides (vendor-rules.ts). */
  vendor?: VendorRules;
}

/** Members that mean something to OpenAI's own service alone. */
const OPENAI_ONLY = [
  "store",
  "metadata",
  "service_tier",
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
  "safety_identifier",
  "moderation",
] as const;

const OPENAI_EXTRAS = ["logit_bias", "parallel_tool_calls", "prompt_cache_key", "verbosity", "user", "metadata"];
const ENGINE_EXTRAS = ["logit_bias", "top_k", "parallel_tool_calls"];

export const OPENAI_CHAT: ChatQuirks = {
  outputLimit: "max_completion_tokens",
  isOldLimit: false,
  developerRole: true,
  leftOut: [],
  extras: new Set(OPENAI_EXTRAS),
  toolChoice: "full",
  customTools: true,
  files: true,
  audio: true,
  video: false,
  jsonObject: true,
  reasoning: [],
  mirrorsReasoning: false,
  uniqueCallIds: true,
  isStrict: true,
  joinsText: false,
  refusals: true,
  countsStreams: true,
  isGateway: false,
};

/** An engine that runs models of others. */
export const ENGINE_CHAT: ChatQuirks = {
  outputLimit: "max_tokens",
  isOldLimit: true,
  developerRole: false,
  leftOut: OPENAI_ONLY,
  extras: new Set(ENGINE_EXTRAS),
  toolChoice: "words",
  customTools: false,
  files: false,
  audio: false,
  video: false,
  jsonObject: true,
  reasoning: ["reasoning", "reasoning_content"],
  mirrorsReasoning: true,
  uniqueCallIds: false,
  isStrict: false,
  joinsText: true,
  refusals: false,
  countsStreams: true,
  isGateway: false,
};

/** An unknown server may be an engine or a hosted service: what a client says itself is mostly left alone. */
export const UNKNOWN_CHAT: ChatQuirks = {
  ...ENGINE_CHAT,
  isOldLimit: false,
  leftOut: [],
  extras: new Set([...ENGINE_EXTRAS, "user"]),
  toolChoice: "named",
  customTools: false,
  files: true,
  audio: true,
  video: true,
  mirrorsReasoning: false,
  countsStreams: false,
};

/** An engine or an unknown server with the rules of its preset. */
export function vendorChat(chat: ChatQuirks, rules: VendorRules): ChatQuirks {
  const { thoughts, media } = rules;
  return {
    ...chat,
    outputLimit: rules.oldLimit === true ? "max_tokens" : "max_completion_tokens",
    isOldLimit: rules.oldLimit === true,
    toolChoice: rules.toolChoice ?? "named",
    ...(media !== undefined && { audio: media.includes("audio"), video: media.includes("video") }),
    ...(thoughts !== undefined && { reasoning: thoughts === "none" ? [] : [thoughts], mirrorsReasoning: false }),
    isStrict: thoughts !== undefined,
    uniqueCallIds: rules.shortCallIds === true,
    countsStreams: rules.refused?.includes("stream_options") !== true,
    ...(Object.keys(rules).some((rule) => BODY_RULES.has(rule)) && { vendor: rules }),
  };
}

/** Those that change the body beyond what the other members say (vendor-rules.ts). */
const BODY_RULES: ReadonlySet<string> = new Set([
  "refused",
  "refusedOf",
  "refusedInMessages",
  "renamed",
  "wantsThoughts",
  "thinkingSwitch",
  "plainText",
  "noSchemas",
  "shortCallIds",
] satisfies (keyof VendorRules)[]);

/** What json_object means, for engines that know json_schema only. */
export const ANY_OBJECT_FORMAT = {
  type: "json_schema",
  json_schema: { name: "object", schema: { type: "object" } },
} as const;

/**
 * The top-level members to change in a chat client's request for a chat backend; a member that is to be removed is given
 * as undefined. Undefined when the request can pass as it is.
 */
export function adaptChatBody(body: JsonObject, quirks: ChatQuirks): Record<string, unknown> | undefined {
  const changes: Record<string, unknown> = {};
  if (quirks.isOldLimit && body.max_completion_tokens !== undefined) {
    changes.max_completion_tokens = undefined;
    if (body.max_completion_tokens !== null) changes.max_tokens = body.max_completion_tokens;
  }
  if (!quirks.jsonObject && isObject(body.response_format) && body.response_format.type === "json_object") {
    changes.response_format = ANY_OBJECT_FORMAT;
  }
  Object.assign(changes, adaptTools(body, quirks));
  if (!quirks.isGateway) {
    const unwrapped = unwrapMessages(body.messages);
    const messages = adaptMessages(unwrapped ?? body.messages, quirks) ?? unwrapped;
    if (messages !== undefined) changes.messages = messages;
  }
  return Object.keys(changes).length > 0 ? changes : undefined;
}

/** The three words pass everywhere, but "none" means nothing to an engine that does not read tool_choice. */
function adaptTools(body: JsonObject, quirks: ChatQuirks): Record<string, unknown> {
  const { tools, tool_choice } = body;
  const isWord = !isObject(tool_choice) && tool_choice !== "none";
  if (!Array.isArray(tools) || (isWord && !(tool_choice === "required" && cannotRequire(quirks.toolChoice)))) return {};
  const choice = parseToolChoice(tool_choice);
  const fitted = fitToolChoice(tools as readonly unknown[], wireToolName, choice, quirks.toolChoice);
  // A choice that cannot be read, and one of tools that are not there, is for the backend to refuse.
  if (fitted.choice === choice || (fitted.tools.length === 0 && choice?.type !== "none")) return {};
  return {
    tools: fitted.tools.length > 0 ? fitted.tools : undefined,
    tool_choice: fitted.choice?.type,
  };
}

/** Engines look for the ids that they gave themselves. Undefined when none was rewritten. */
function unwrapMessages(messages: unknown): unknown[] | undefined {
  if (!Array.isArray(messages) || !messages.some(hasWrappedId)) return undefined;
  const originals = originalCallIds(messages.flatMap(callIdsOf));
  const original = (id: unknown) => originals.get(id as string) ?? id;
  return messages.map((message: unknown) => {
    if (!isObject(message)) return message;
    const { tool_call_id, tool_calls } = message;
    if (tool_call_id !== undefined) return { ...message, tool_call_id: original(tool_call_id) };
    if (!Array.isArray(tool_calls)) return message;
    const calls = tool_calls.map((call: unknown) => (isObject(call) ? { ...call, id: original(call.id) } : call));
    return { ...message, tool_calls: calls };
  });
}

function hasWrappedId(message: unknown): boolean {
  return callIdsOf(message).some((id) => id.startsWith("crt_"));
}

const NO_IDS: readonly string[] = [];

/** The ids of calls and results that a message names. */
function callIdsOf(message: unknown): readonly string[] {
  if (!isObject(message)) return NO_IDS;
  const { tool_call_id, tool_calls } = message;
  if (typeof tool_call_id === "string") return [tool_call_id];
  if (!Array.isArray(tool_calls)) return NO_IDS;
  return tool_calls.flatMap((call: unknown) => (isObject(call) && typeof call.id === "string" ? [call.id] : []));
}

/** Undefined when no message has to change. */
function adaptMessages(messages: unknown, quirks: ChatQuirks): unknown[] | undefined {
  if (!Array.isArray(messages)) return undefined;
  let adapted: unknown[] | undefined;
  for (let index = 0; index < messages.length; index++) {
    const message: unknown = messages[index];
    const changed = isObject(message) ? adaptMessage(message, quirks) : undefined;
    if (changed === undefined) continue;
    adapted ??= [...messages];
    adapted[index] = changed;
  }
  return adapted;
}

function adaptMessage(message: JsonObject, quirks: ChatQuirks): JsonObject | undefined {
  switch (message.role) {
    case "developer":
      return quirks.developerRole ? undefined : { ...message, role: "system" };
    case "tool":
      return message.is_error === undefined ? undefined : adaptToolResult(message);
    case "assistant":
      return quirks.isStrict ? withoutExtensions(message, quirks.reasoning) : adaptReasoning(message, quirks);
    default:
      return undefined;
  }
}

function adaptToolResult({ is_error, ...message }: JsonObject): JsonObject {
  if (is_error !== true) return message;
  const { content } = message;
  if (typeof content === "string") return { ...message, content: markToolError(content) };
  if (!Array.isArray(content)) return message;
  return { ...message, content: [{ type: "text", text: markToolError("") }, ...content] };
}

const MESSAGE_EXTENSIONS = ["reasoning_content", "reasoning", "reasoning_details", "extra_content", "images"];

/** The calls of a message of which at least one carries a proof. */
function signedCalls({ tool_calls: calls }: JsonObject): unknown[] | undefined {
  if (!Array.isArray(calls)) return undefined;
  return calls.some((call) => isObject(call) && "extra_content" in call) ? calls : undefined;
}

/** @param kept - members for thoughts that the backend reads; they hold what stands in another one */
function withoutExtensions(message: JsonObject, kept: ChatQuirks["reasoning"]): JsonObject | undefined {
  const calls = signedCalls(message);
  const foreign = MESSAGE_EXTENSIONS.filter(
    (field) => field in message && !(kept as readonly string[]).includes(field),
  );
  if (calls === undefined && foreign.length === 0) return undefined;
  const stripped = { ...message };
  const thoughts = [message.reasoning_content, message.reasoning].find((text) => typeof text === "string");
  for (const field of foreign) delete stripped[field];
  for (const field of kept) if (thoughts !== undefined) stripped[field] ??= thoughts;
  if (calls !== undefined) stripped.tool_calls = calls.map(withoutExtraContent);
  return stripped;
}

function withoutExtraContent(call: unknown): unknown {
  if (!isObject(call)) return call;
  const { extra_content: _, ...rest } = call;
  return rest;
}

/** Engines know the text of thoughts alone; the proofs that the gateway adds to it mean nothing to them. */
function adaptReasoning(message: JsonObject, quirks: ChatQuirks): JsonObject | undefined {
  if (!quirks.mirrorsReasoning) return undefined;
  const calls = signedCalls(message);
  if (message.reasoning_details === undefined && calls === undefined) return mirrorReasoning(message, quirks);
  const { reasoning_details: _, ...stripped } = message;
  if (calls !== undefined) stripped.tool_calls = calls.map(withoutExtraContent);
  return mirrorReasoning(stripped, quirks) ?? stripped;
}

function mirrorReasoning(message: JsonObject, quirks: ChatQuirks): JsonObject | undefined {
  const told = quirks.reasoning.map((field) => message[field]).find((text) => typeof text === "string" && text !== "");
  if (told === undefined) return undefined;
  const missing = quirks.reasoning.filter((field) => message[field] === undefined || message[field] === null);
  return missing.length === 0
    ? undefined
    : { ...message, ...Object.fromEntries(missing.map((field) => [field, told])) };
}
