// Tools, tool choice and tool calls of the chat format, the deprecated functions included.

import type { CacheHint, ToolCallPart } from "../../generation/content.ts";
import type { Tool, ToolChoice, WebSearchTool } from "../../generation/tools.ts";
import { compact, isObject, isPresent, type JsonObject } from "../../lib/json.ts";
import { invalidField, missingField, wrongType } from "../fields.ts";
import { nonEmptyText, optionalBoolean, optionalObject } from "../reading.ts";
import { readThoughtSignature } from "./wire.ts";

// ---- Definitions

export function decodeTools(body: JsonObject): Tool[] {
  const tools: Tool[] = [];
  for (const [index, tool] of listOf(body.tools).entries()) tools.push(decodeTool(tool, `tools[${index}]`));
  if (tools.length === 0) {
    for (const [index, definition] of listOf(body.functions).entries()) {
      tools.push(decodeFunction(definition, {}, `functions[${index}]`));
    }
  }
  if (isObject(body.web_search_options)) tools.push(webSearch(body.web_search_options));
  return tools;
}

/** Whether a client uses the deprecated functions, and has to be answered in their form. */
export function usesFunctions(body: JsonObject): boolean {
  return listOf(body.tools).length === 0 && listOf(body.functions).length > 0;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function decodeTool(tool: unknown, path: string): Tool {
  if (!isObject(tool)) throw wrongType(path, "an object", tool);
  const { type } = tool;
  if (type === "function" || (type === undefined && isObject(tool.function))) {
    return decodeFunction(tool.function, tool, `${path}.function`);
  }
  if (type === "custom") return decodeCustom(tool.custom, `${path}.custom`);
  if (typeof type !== "string" || type === "") throw missingField(`${path}.type`, '"function" or "custom".');
  if (type.startsWith("web_search")) return webSearch(tool);
  return { kind: "hosted", name: type, origin: { protocol: "chat", value: tool } };
}

function decodeFunction(value: unknown, tool: JsonObject, path: string): Tool {
  if (!isObject(value)) throw missingField(path, "an object with the name and the parameters of the function.");
  const { description, parameters, strict } = value;
  const name = nameOf(value, path);
  if (isPresent(parameters) && !isObject(parameters)) {
    throw wrongType(`${path}.parameters`, "a JSON Schema object", parameters);
  }
  return compact({
    kind: "function",
    name,
    description: typeof description === "string" ? description : undefined,
    parameters: optionalObject(parameters),
    strict: optionalBoolean(strict),
    cache: readCacheHint(tool) ?? readCacheHint(value),
  });
}

function decodeCustom(value: unknown, path: string): Tool {
  if (!isObject(value)) throw missingField(path, "an object with the name of the tool.");
  const { description, format } = value;
  return compact({
    kind: "custom",
    name: nameOf(value, path),
    description: typeof description === "string" ? description : undefined,
    format: optionalObject(format),
  });
}

function nameOf(value: JsonObject, path: string): string {
  const { name } = value;
  if (name === undefined || name === null || name === "") throw missingField(`${path}.name`, "the name of the tool.");
  if (typeof name !== "string") throw wrongType(`${path}.name`, "a string", name);
  return name;
}

function webSearch(value: JsonObject): WebSearchTool {
  const location = optionalObject(value.user_location);
  return compact({
    kind: "web-search",
    name: "web_search",
    origin: { protocol: "chat", value },
    userLocation: optionalObject(location?.approximate) ?? location,
  });
}

/** cache_control, which many chat clients put on parts, messages and tools for backends that know it. */
export function readCacheHint(holder: JsonObject): CacheHint | undefined {
  const { cache_control } = holder;
  if (!isObject(cache_control)) return undefined;
  return cache_control.ttl === "5m" || cache_control.ttl === "1h" ? { ttl: cache_control.ttl } : {};
}

const NO_PARAMETERS = { type: "object", properties: {}, additionalProperties: false };

/** Undefined for a tool that chat backends do not know. */
export function encodeTool(tool: Tool): JsonObject | undefined {
  if (tool.kind === "function") {
    const { name, description, parameters = NO_PARAMETERS, strict } = tool;
    return { type: "function", function: compact({ name, description, parameters, strict }) };
  }
  if (tool.kind === "custom") {
    const { name, description, format } = tool;
    return { type: "custom", custom: compact({ name, description, format }) };
  }
  const { protocol, value } = tool.origin;
  return protocol === "chat" && typeof value.type === "string" ? value : undefined;
}

/** The name of a tool as it is on the wire. */
export function wireToolName(tool: unknown): string | undefined {
  if (!isObject(tool)) return undefined;
  const named = tool.type === "custom" ? tool.custom : tool.function;
  return isObject(named) && typeof named.name === "string" ? named.name : undefined;
}

// ---- Choice

export function decodeToolChoice(body: JsonObject): ToolChoice | undefined {
  const [field, value] = isPresent(body.tool_choice)
    ? (["tool_choice", body.tool_choice] as const)
    : (["function_call", body.function_call] as const);
  if (!isPresent(value)) return undefined;
  const choice = parseToolChoice(value);
  if (choice === undefined) {
    throw invalidField(field, "expected none, auto, required, or an object that names a tool or the allowed tools.");
  }
  return choice;
}

/** Undefined for anything that is no tool choice. */
export function parseToolChoice(value: unknown): ToolChoice | undefined {
  if (value === "auto" || value === "none" || value === "required") return { type: value };
  if (value === "any") return { type: "required" };
  if (!isObject(value)) return undefined;
  if (value.type === "allowed_tools") return parseAllowed(value.allowed_tools);
  // {type: "function", function: {name}}, {type: "custom", custom: {name}} or the deprecated {name}
  const name = wireToolName(value) ?? (typeof value.name === "string" ? value.name : undefined);
  if (name !== undefined) return { type: "tool", name };
  return typeof value.type === "string" ? parseToolChoice(value.type) : undefined;
}

function parseAllowed(value: unknown): ToolChoice | undefined {
  if (!isObject(value) || !Array.isArray(value.tools)) return undefined;
  const names = value.tools.map((tool) => wireToolName(tool) ?? (isObject(tool) ? tool.name : undefined));
  if (!names.every((name) => typeof name === "string")) return undefined;
  return { type: "allowed", mode: value.mode === "required" ? "required" : "auto", names };
}

export function encodeToolChoice(choice: ToolChoice, tools: readonly Tool[]): unknown {
  const reference = (name: string): JsonObject => {
    const isCustom = tools.some((tool) => tool.kind === "custom" && tool.name === name);
    return isCustom ? { type: "custom", custom: { name } } : { type: "function", function: { name } };
  };
  if (choice.type === "tool") return reference(choice.name);
  if (choice.type !== "allowed") return choice.type;
  return { type: "allowed_tools", allowed_tools: { mode: choice.mode, tools: choice.names.map(reference) } };
}

/**
 * How much of tool_choice an engine honours: everything, no allowed_tools, a named tool but not "required", only the three
 * words, only auto and none, only auto, or nothing.
 */
export type ToolChoiceSupport = "full" | "named" | "named-or-auto" | "words" | "auto" | "only-auto" | "nothing";

/** The word "required" is refused; engines that read no word at all ignore it. */
export function cannotRequire(support: ToolChoiceSupport): boolean {
  return support === "named-or-auto" || support === "auto" || support === "only-auto";
}

interface FittedTools<T> {
  tools: readonly T[];
  choice: ToolChoice | undefined;
  /** The model is no longer made to call a tool. */
  isWeaker: boolean;
}

/** Says by the list of tools what an engine does not understand in tool_choice. */
export function fitToolChoice<T>(
  tools: readonly T[],
  nameOf: (tool: T) => string | undefined,
  choice: ToolChoice | undefined,
  support: ToolChoiceSupport,
): FittedTools<T> {
  const unchanged = { tools, choice, isWeaker: false };
  if (choice === undefined || support === "full") return unchanged;
  const only = (names: readonly string[]): readonly T[] => tools.filter((tool) => names.includes(nameOf(tool) ?? ""));
  const canRequire = support !== "nothing" && !cannotRequire(support);
  if (choice.type === "allowed") {
    const isWeaker = choice.mode === "required" && !canRequire;
    return {
      tools: only(choice.names),
      choice: support === "nothing" || isWeaker ? undefined : { type: choice.mode },
      isWeaker,
    };
  }
  if (choice.type === "tool" && support !== "named" && support !== "named-or-auto") {
    return { tools: only([choice.name]), choice: canRequire ? { type: "required" } : undefined, isWeaker: !canRequire };
  }
  if (choice.type === "required" && !canRequire) return { tools, choice: undefined, isWeaker: true };
  if (support !== "nothing" && !(support === "only-auto" && choice.type === "none")) return unchanged;
  return { tools: choice.type === "none" ? [] : tools, choice: undefined, isWeaker: false };
}

// ---- Calls in messages

/** One entry of tool_calls, as clients replay it and backends write it; undefined for something without a name. */
export function decodeToolCall(entry: JsonObject, fallbackId: string): ToolCallPart | undefined {
  const isCustom = isCustomCall(entry);
  const called = isCustom ? entry.custom : entry.function;
  if (!isObject(called) || typeof called.name !== "string" || called.name === "") return undefined;
  return compact({
    type: "tool-call",
    id: nonEmptyText(entry.id) ?? fallbackId,
    name: called.name as string,
    arguments: argumentText(isCustom ? called.input : called.arguments),
    custom: isCustom || undefined,
    signature: readThoughtSignature(entry),
  });
}

/** By the type where there is one: some engines send an empty `custom` beside the function. */
export function isCustomCall({ type, custom, function: called }: JsonObject): boolean {
  return type === "custom" || (type !== "function" && isObject(custom) && !isObject(called));
}

/** Some engines write the arguments as an object instead of its text. */
export function argumentText(value: unknown): string {
  if (typeof value === "string") return value;
  return isObject(value) ? JSON.stringify(value) : "";
}

/** An id for a call that came without one; it has no known prefix, so that it is made unique where ids are rewritten. */
export function missingCallId(position: number): string {
  return `tool_${position}`;
}
