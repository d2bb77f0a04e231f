// Tool definitions and the choice among them, in both directions.

import type { DropList } from "../../generation/dropped.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import type { CustomTool, FunctionTool, HostedTool, Tool, ToolChoice, WebSearchTool } from "../../generation/tools.ts";
import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { cleanSchema } from "../constrained-schema.ts";
import { invalidField } from "../fields.ts";
import { objectOf, objectsOf, optionalBoolean, optionalNumber, optionalText, textOf, textsOf } from "../reading.ts";
import { FREE_FORM_SCHEMA, freeFormDescription } from "../tool-input.ts";
import { cacheControlMember, cacheMember } from "./cache-control.ts";
import type { ModelRules } from "./model-rules.ts";

/** Every version of the vendor's own web search; the date behind it changes. */
const WEB_SEARCH_PREFIX = "web_search_";
const WEB_SEARCH_TYPE = "web_search_20250305";

const TOOL_NAME = /^[A-Za-z0-9_-]{1,128}$/;

export function decodeTools(value: unknown): Tool[] {
  return objectsOf(value).map(decodeTool);
}

function decodeTool(tool: JsonObject): Tool {
  const type = optionalText(tool.type);
  if (type === undefined || type === "custom") return decodeFunction(tool);
  const origin = { protocol: "messages", value: tool };
  if (!type.startsWith(WEB_SEARCH_PREFIX)) return { kind: "hosted", name: type, origin };
  const { type: _approximate, ...location } = objectOf(tool.user_location);
  return {
    kind: "web-search",
    name: optionalText(tool.name) ?? "web_search",
    origin,
    ...cacheMember(tool.cache_control),
    ...compact({
      maxUses: optionalNumber(tool.max_uses),
      allowedDomains: Array.isArray(tool.allowed_domains) ? textsOf(tool.allowed_domains) : undefined,
      blockedDomains: Array.isArray(tool.blocked_domains) ? textsOf(tool.blocked_domains) : undefined,
      userLocation: isObject(tool.user_location) ? location : undefined,
    }),
  };
}

function decodeFunction(tool: JsonObject): FunctionTool {
  return {
    kind: "function",
    name: textOf(tool.name),
    ...cacheMember(tool.cache_control),
    ...compact({
      description: optionalText(tool.description),
      parameters: isObject(tool.input_schema) ? tool.input_schema : undefined,
      strict: optionalBoolean(tool.strict),
    }),
  };
}

export function decodeToolChoice(value: unknown): Pick<GenerationRequest, "toolChoice" | "parallelToolCalls"> {
  if (!isObject(value)) return {};
  const isOne = optionalBoolean(value.disable_parallel_tool_use);
  return compact({ toolChoice: choiceOf(value), parallelToolCalls: isOne === undefined ? undefined : !isOne });
}

function choiceOf({ type, name }: JsonObject): ToolChoice | undefined {
  if (type === "auto" || type === "none") return { type };
  if (type === "any") return { type: "required" };
  return type === "tool" ? { type, name: textOf(name) } : undefined;
}

export interface EncodedTools {
  tools: JsonObject[];
  toolChoice?: JsonObject;
  /** Members of the body that stand beside the tools, e.g. mcp_servers. */
  beside: JsonObject;
}

interface ToolEncoding {
  rules: ModelRules;
  isThinking: boolean;
  dropped: DropList;
}

export function encodeTools(request: GenerationRequest, context: ToolEncoding): EncodedTools {
  const { choice, names } = allowedChoice(request.toolChoice, context);
  const encoded: EncodedTools = { tools: [], beside: {} };
  for (const [index, tool] of request.tools.entries()) {
    if (tool.kind === "hosted" && isBesideTools(tool)) Object.assign(encoded.beside, tool.origin.value);
    else if (tool.kind === "hosted" && tool.optional === true && tool.origin.protocol !== "messages") {
      context.dropped.add(`hosted tool ${tool.name}`);
    } else if (names?.has(tool.name) !== false) encoded.tools.push(encodeTool(tool, index, context));
  }
  if (encoded.tools.length === 0 && encoded.beside.mcp_servers === undefined) return encoded;
  return { ...encoded, ...compact({ toolChoice: withParallel(choice, request.parallelToolCalls) }) };
}

interface AllowedChoice {
  choice: JsonObject | undefined;
  /** Only these tools are offered; undefined: all. */
  names?: ReadonlySet<string> | undefined;
}

/** The choice that the model takes: some never accept a forced one, and none does while it thinks. */
function allowedChoice(asked: ToolChoice | undefined, { rules, isThinking, dropped }: ToolEncoding): AllowedChoice {
  if (asked === undefined) return { choice: undefined };
  if (asked.type === "auto" || asked.type === "none") return { choice: { type: asked.type } };
  const names = asked.type === "allowed" ? new Set(asked.names) : undefined;
  if (asked.type === "allowed" && asked.mode === "auto") return { choice: { type: "auto" }, names };
  if (rules.forcedToolChoice && !isThinking) {
    return { choice: asked.type === "tool" ? { type: "tool", name: asked.name } : { type: "any" }, names };
  }
  dropped.add("tool_choice", rules.forcedToolChoice ? "cannot be forced while thinking" : "cannot be forced");
  return { choice: { type: "auto" }, names: asked.type === "tool" ? new Set([asked.name]) : names };
}

function withParallel(choice: JsonObject | undefined, parallel: boolean | undefined): JsonObject | undefined {
  if (parallel !== false || choice?.type === "none") return choice;
  return { ...(choice ?? { type: "auto" }), disable_parallel_tool_use: true };
}

/** Members of the body that the request decoder passed as a tool, so that other protocols refuse them by name. */
const BESIDE_TOOLS = ["mcp_servers"] as const;

function isBesideTools({ name, origin }: HostedTool): boolean {
  return origin.protocol === "messages" && BESIDE_TOOLS.some((member) => member === name);
}

function encodeTool(tool: Tool, index: number, context: ToolEncoding): JsonObject {
  switch (tool.kind) {
    case "function":
      checkName(tool.name, index);
      return encodeFunction(tool, context);
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

function encodeFunction(tool: FunctionTool, { rules, dropped }: ToolEncoding): JsonObject {
  const { name, description, parameters, strict, cache } = tool;
  const lacksProperties = parameters !== undefined && parameters.properties === undefined;
  const schema: JsonObject = { type: "object", ...(lacksProperties ? {} : { properties: {} }), ...parameters };
  const cleaned = strict === true && rules.structuredOutput ? cleanSchema(schema) : undefined;
  if (strict === true && cleaned === undefined) dropped.add("strict", "the model or the schema does not allow it");
  return {
    name,
    ...compact({ description, strict: cleaned && true }),
    input_schema: cleaned ?? schema,
    ...cacheControlMember(cache),
  };
}

function encodeCustom(tool: CustomTool): JsonObject {
  const description = freeFormDescription(tool);
  return {
    name: tool.name,
    ...(description !== "" && { description }),
    input_schema: { ...FREE_FORM_SCHEMA, additionalProperties: false },
  };
}

function encodeWebSearch(tool: WebSearchTool): JsonObject {
  const { maxUses, allowedDomains = [], blockedDomains = [], userLocation, cache } = tool;
  // Only one of the two lists is accepted; the list of allowed domains is the stricter one.
  const isAllowed = allowedDomains.length > 0;
  return {
    type: WEB_SEARCH_TYPE,
    name: "web_search",
    ...compact({ max_uses: maxUses }),
    ...(isAllowed && { allowed_domains: allowedDomains }),
    ...(!isAllowed && blockedDomains.length > 0 && { blocked_domains: blockedDomains }),
    ...(userLocation !== undefined && { user_location: { ...userLocation, type: "approximate" } }),
    ...cacheControlMember(cache),
  };
}
