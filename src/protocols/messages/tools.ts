// Tool definitions and the choice among them, in both directions.

import type { DropList } from "../../generation/dropped.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import type { CustomTool, FunctionTool, HostedTool, Tool, ToolChoice, WebSearchTool } from "../../generation/tools.ts";
import { isObject, type JsonObject } from "../../lib/json.ts";
import { invalidField } from "../fields.ts";
import { cacheControlMember, cacheMember } from "./cache-control.ts";
import type { ModelRules } from "./model-rules.ts";
import { cleanSchema } from "./schema-cleaning.ts";
import { arrayOf, optionalText, textOf } from "./wire.ts";

/** Every version of the vendor's own web search; the date behind it changes. */
const WEB_SEARCH_PREFIX = "web_search_";
const WEB_SEARCH_TYPE = "web_search_20250305";

const TOOL_NAME = /^[A-Za-z0-9_-]{1,128}$/;

/** The one member of a free-form tool's input: this format knows only objects. */
export const FREE_FORM_MEMBER = "input";

export function decodeTools(value: unknown): Tool[] {
  return arrayOf(value).filter(isObject).map(decodeTool);
}

function decodeTool(tool: JsonObject): Tool {
  const type = optionalText(tool.type);
  if (type === undefined || type === "custom") return decodeFunction(tool);
  const origin = { protocol: "messages" as const, value: tool };
  if (!type.startsWith(WEB_SEARCH_PREFIX)) return { kind: "hosted", name: type, origin };
  const search: WebSearchTool = {
    kind: "web-search",
    name: optionalText(tool.name) ?? "web_search",
    origin,
    ...cacheMember(tool.cache_control),
  };
  if (typeof tool.max_uses === "number") search.maxUses = tool.max_uses;
  if (Array.isArray(tool.allowed_domains)) search.allowedDomains = stringsIn(tool.allowed_domains);
  if (Array.isArray(tool.blocked_domains)) search.blockedDomains = stringsIn(tool.blocked_domains);
  if (isObject(tool.user_location)) {
    const { type: _approximate, ...location } = tool.user_location;
    search.userLocation = location;
  }
  return search;
}

function decodeFunction(tool: JsonObject): FunctionTool {
  const decoded: FunctionTool = { kind: "function", name: textOf(tool.name), ...cacheMember(tool.cache_control) };
  if (typeof tool.description === "string") decoded.description = tool.description;
  if (isObject(tool.input_schema)) decoded.parameters = tool.input_schema;
  if (typeof tool.strict === "boolean") decoded.strict = tool.strict;
  return decoded;
}

function stringsIn(values: readonly unknown[]): string[] {
  return values.filter((value) => typeof value === "string");
}

export function decodeToolChoice(value: unknown): Pick<GenerationRequest, "toolChoice" | "parallelToolCalls"> {
  if (!isObject(value)) return {};
  const decoded: Pick<GenerationRequest, "toolChoice" | "parallelToolCalls"> = {};
  if (value.type === "auto") decoded.toolChoice = { type: "auto" };
  else if (value.type === "any") decoded.toolChoice = { type: "required" };
  else if (value.type === "none") decoded.toolChoice = { type: "none" };
  else if (value.type === "tool") decoded.toolChoice = { type: "tool", name: textOf(value.name) };
  if (typeof value.disable_parallel_tool_use === "boolean") {
    decoded.parallelToolCalls = !value.disable_parallel_tool_use;
  }
  return decoded;
}

export interface EncodedTools {
  tools: JsonObject[];
  toolChoice?: JsonObject;
  /** Members of the body that stand beside the tools, e.g. mcp_servers. */
  beside: JsonObject;
}

export function encodeTools(
  request: GenerationRequest,
  rules: ModelRules,
  isThinking: boolean,
  dropped: DropList,
): EncodedTools {
  const choice = allowedChoice(request.toolChoice, rules, isThinking, dropped);
  const encoded: EncodedTools = { tools: [], beside: {} };
  for (const [index, tool] of request.tools.entries()) {
    if (tool.kind === "hosted" && isBesideTools(tool)) Object.assign(encoded.beside, tool.origin.value);
    else if (tool.kind === "hosted" && tool.optional === true && tool.origin.protocol !== "messages") {
      dropped.add(`hosted tool ${tool.name}`);
    } else if (isOffered(tool, choice.names)) encoded.tools.push(encodeTool(tool, index, rules, dropped));
  }
  if (encoded.tools.length === 0 && encoded.beside.mcp_servers === undefined) return encoded;
  const toolChoice = withParallel(choice.value, request.parallelToolCalls);
  if (toolChoice !== undefined) encoded.toolChoice = toolChoice;
  return encoded;
}

interface AllowedChoice {
  value: JsonObject | undefined;
  /** Only these tools are offered; undefined: all. */
  names?: ReadonlySet<string>;
}

/** The choice that the model takes: some never accept a forced one, and none does while it thinks. */
function allowedChoice(
  choice: ToolChoice | undefined,
  rules: ModelRules,
  isThinking: boolean,
  dropped: DropList,
): AllowedChoice {
  if (choice === undefined) return { value: undefined };
  if (choice.type === "auto" || choice.type === "none") return { value: { type: choice.type } };
  if (choice.type === "allowed" && choice.mode === "auto") {
    return { value: { type: "auto" }, names: new Set(choice.names) };
  }
  const names = choice.type === "allowed" ? new Set(choice.names) : undefined;
  if (rules.forcedToolChoice && !isThinking) {
    const value = choice.type === "tool" ? { type: "tool", name: choice.name } : { type: "any" };
    return names === undefined ? { value } : { value, names };
  }
  dropped.add("tool_choice", rules.forcedToolChoice ? "cannot be forced while thinking" : "cannot be forced");
  const only = choice.type === "tool" ? new Set([choice.name]) : names;
  return only === undefined ? { value: { type: "auto" } } : { value: { type: "auto" }, names: only };
}

function withParallel(choice: JsonObject | undefined, parallel: boolean | undefined): JsonObject | undefined {
  if (parallel !== false || choice?.type === "none") return choice;
  return { ...(choice ?? { type: "auto" }), disable_parallel_tool_use: true };
}

function isOffered(tool: Tool, names: ReadonlySet<string> | undefined): boolean {
  return names === undefined || names.has(tool.name);
}

/** Members of the body that the request decoder passed as a tool, so that other protocols refuse them by name. */
const BESIDE_TOOLS = ["mcp_servers"] as const;

function isBesideTools({ name, origin }: HostedTool): boolean {
  return origin.protocol === "messages" && BESIDE_TOOLS.some((member) => member === name);
}

function encodeTool(tool: Tool, index: number, rules: ModelRules, dropped: DropList): JsonObject {
  switch (tool.kind) {
    case "function":
      checkName(tool.name, index);
      return encodeFunction(tool, rules, dropped);
    case "custom":
      checkName(tool.name, index);
      return encodeCustom(tool);
    case "web-search":
      return tool.origin.protocol === "messages" ? { ...tool.origin.value } : encodeWebSearch(tool);
    case "hosted":
      if (tool.origin.protocol === "messages") return { ...tool.origin.value };
      throw invalidField(`tools[${index}]`, `the tool "${tool.name}" is run by another vendor; this backend has none.`);
  }
}

function checkName(name: string, index: number): void {
  if (TOOL_NAME.test(name)) return;
  throw invalidField(`tools[${index}].name`, "expected 1 to 128 letters, digits, underscores or dashes.");
}

function encodeFunction(tool: FunctionTool, rules: ModelRules, dropped: DropList): JsonObject {
  const encoded: JsonObject = { name: tool.name };
  if (tool.description !== undefined) encoded.description = tool.description;
  let schema: JsonObject = { type: "object", properties: {}, ...tool.parameters };
  if (tool.parameters !== undefined && tool.parameters.properties === undefined) {
    schema = { type: "object", ...tool.parameters };
  }
  if (tool.strict === true) {
    const cleaned = rules.structuredOutput ? cleanSchema(schema) : undefined;
    if (cleaned === undefined) dropped.add("strict", "the model or the schema does not allow it");
    else {
      schema = cleaned;
      encoded.strict = true;
    }
  }
  encoded.input_schema = schema;
  return { ...encoded, ...cacheControlMember(tool.cache) };
}

/** A free-form tool becomes one with a single string; its grammar is told in words. */
function encodeCustom({ name, description, format }: CustomTool): JsonObject {
  const grammar = format === undefined || format.type === "text" ? [] : [`Format: ${JSON.stringify(format)}`];
  const encoded: JsonObject = { name };
  const text = [description ?? "", ...grammar].filter((line) => line !== "").join("\n\n");
  if (text !== "") encoded.description = text;
  encoded.input_schema = {
    type: "object",
    properties: { [FREE_FORM_MEMBER]: { type: "string", description: "The whole input of the tool." } },
    required: [FREE_FORM_MEMBER],
    additionalProperties: false,
  };
  return encoded;
}

function encodeWebSearch(tool: WebSearchTool): JsonObject {
  const encoded: JsonObject = { type: WEB_SEARCH_TYPE, name: "web_search" };
  if (tool.maxUses !== undefined) encoded.max_uses = tool.maxUses;
  // Only one of the two lists is accepted; the list of allowed domains is the stricter one.
  if (tool.allowedDomains !== undefined && tool.allowedDomains.length > 0) {
    encoded.allowed_domains = tool.allowedDomains;
  } else if (tool.blockedDomains !== undefined && tool.blockedDomains.length > 0) {
    encoded.blocked_domains = tool.blockedDomains;
  }
  if (tool.userLocation !== undefined) encoded.user_location = { ...tool.userLocation, type: "approximate" };
  return { ...encoded, ...cacheControlMember(tool.cache) };
}
