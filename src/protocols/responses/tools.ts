// Tools and the choice among them: flat here, where chat completions nest them.

import type { DropList } from "../../generation/dropped.ts";
import {
  type FunctionTool,
  type Tool,
  type ToolChoice,
  WEB_SEARCH,
  type WebSearchTool,
} from "../../generation/tools.ts";
import { compact, isPresent, type JsonObject } from "../../lib/json.ts";
import { invalidField, missingField } from "../fields.ts";
import { filled, nonEmptyText, objectOf, objectsOf, optionalBoolean, textOf } from "../reading.ts";
import { flatName, flattened, NAMESPACE } from "./namespaces.ts";
import { checkTool } from "./read-request.ts";

/**
 * Hosted tools that agents offer to every model, unasked and beside tools of their own, and that a task can be done
 * without. All others mean data or places that the answer is to come from.
 */
const OFFERED_UNASKED: ReadonlySet<string> = new Set([WEB_SEARCH, "image_generation", "tool_search"]);

/** For tools that read-request.ts has checked; those inside of namespaces are checked here. */
export function decodeTools(tools: readonly JsonObject[], path: string): Tool[] {
  return tools.flatMap((tool, index): Tool[] => {
    if (tool.type !== NAMESPACE) return [decodeTool(tool)];
    for (const [place, member] of objectsOf(tool.tools).entries())
      checkTool(member, `${path}[${index}].tools[${place}]`);
    return flattened(tool).map(decodeTool);
  });
}

/** With tools that items of the input bring: of a name that is declared twice the later declaration counts. */
export function joinTools(tools: readonly Tool[], added: readonly Tool[]): Tool[] {
  const later = new Map(added.filter(isRunByClient).map((tool) => [tool.name, tool]));
  const kept = tools.filter((tool) => !isRunByClient(tool) || !later.has(tool.name));
  return [...kept, ...added.filter((tool) => !isRunByClient(tool) || later.get(tool.name) === tool)];
}

/** The tools with those marked that the client can do without. */
export function withOptionalTools(tools: Tool[], choice: ToolChoice | undefined): Tool[] {
  if (!tools.some(isRunByClient) || !tools.some((tool) => !isRunByClient(tool))) return tools;
  const wanted = choice?.type === "tool" ? [choice.name] : choice?.type === "allowed" ? choice.names : [];
  const isDemanded = ({ name }: Tool) =>
    wanted.includes(name) && !tools.some((tool) => isRunByClient(tool) && wanted.includes(tool.name));
  return tools.map((tool) => {
    if (isRunByClient(tool) || !OFFERED_UNASKED.has(tool.name) || isDemanded(tool)) return tool;
    return { ...tool, optional: true };
  });
}

/** Whether the client runs the tool itself. */
function isRunByClient({ kind }: Tool): boolean {
  return kind === "function" || kind === "custom";
}

function decodeTool(tool: JsonObject): Tool {
  const type = textOf(tool.type);
  if (type === "function") return decodeFunction(tool);
  if (type === "custom") {
    return compact({
      kind: "custom",
      name: textOf(tool.name),
      description: nonEmptyText(tool.description),
      format: isPresent(tool.format) ? objectOf(tool.format) : undefined,
    });
  }
  if (isWebSearch(type)) return decodeWebSearch(tool);
  return { kind: "hosted", name: type, origin: { protocol: "responses", value: tool } };
}

function decodeFunction(tool: JsonObject): FunctionTool {
  return compact({
    kind: "function",
    name: textOf(tool.name),
    description: nonEmptyText(tool.description),
    parameters: isPresent(tool.parameters) ? objectOf(tool.parameters) : undefined,
    strict: optionalBoolean(tool.strict),
  });
}

/** web_search and web_search_preview, dated or not. */
function isWebSearch(type: string): boolean {
  return type.startsWith(WEB_SEARCH);
}

const LOCATION_FIELDS = ["city", "region", "country", "timezone"] as const;

function decodeWebSearch(tool: JsonObject): WebSearchTool {
  const filters = objectOf(tool.filters);
  const given = objectOf(tool.user_location);
  const location = LOCATION_FIELDS.filter((field) => typeof given[field] === "string");
  return compact({
    kind: "web-search",
    name: WEB_SEARCH,
    allowedDomains: domains(filters.allowed_domains),
    blockedDomains: domains(filters.blocked_domains),
    userLocation: filled(location) && Object.fromEntries(location.map((field) => [field, given[field]])),
    origin: { protocol: "responses", value: tool },
  });
}

function domains(value: unknown): string[] | undefined {
  return Array.isArray(value) ? filled(value.filter((entry) => typeof entry === "string")) : undefined;
}

export function decodeToolChoice(choice: unknown): ToolChoice | undefined {
  if (choice === "auto" || choice === "none" || choice === "required") return { type: choice };
  if (!isPresent(choice)) return undefined;
  const given = objectOf(choice);
  if (given.type !== "allowed_tools") return { type: "tool", name: choiceName(given) };
  const tools = objectsOf(given.tools);
  if (tools.length === 0) throw missingField("tool_choice.tools", "the tools that may be called.");
  if (given.mode !== "auto" && given.mode !== "required") {
    throw invalidField("tool_choice.mode", 'expected "auto" or "required".');
  }
  return { type: "allowed", mode: given.mode, names: tools.map(choiceName) };
}

/** Tools without a name of their own are chosen by their type. */
function choiceName(tool: JsonObject): string {
  const type = textOf(tool.type);
  if (isPresent(tool.name)) return flatName(tool);
  return isWebSearch(type) ? WEB_SEARCH : type;
}

/** `isOwn`: the client speaks this format too, so that what it left out means the same to the backend. */
export function encodeTools(tools: readonly Tool[], isOwn: boolean, dropped: DropList): JsonObject[] {
  return tools.map((tool, index) => encodeTool(tool, `tools[${index}]`, isOwn, dropped));
}

function encodeTool(tool: Tool, param: string, isOwn: boolean, dropped: DropList): JsonObject {
  switch (tool.kind) {
    case "function":
      if (tool.cache !== undefined) dropped.add("cache_control on tools");
      return encodeFunction(tool, isOwn);
    case "custom":
      return compact({ type: "custom", name: tool.name, description: tool.description, format: tool.format });
    case "web-search":
      return tool.origin.protocol === "responses" ? tool.origin.value : encodeWebSearch(tool, param, dropped);
    case "hosted":
      if (tool.origin.protocol === "responses") return tool.origin.value;
      throw invalidField(param, `the backend of this model has no tool of the type ${JSON.stringify(tool.name)}.`);
  }
}

/** Left out, strict would mean "where the schema permits it"; the other formats mean false. */
function encodeFunction(tool: FunctionTool, isOwn: boolean): JsonObject {
  return compact({
    type: "function",
    name: tool.name,
    description: tool.description,
    parameters: tool.parameters ?? { type: "object", properties: {} },
    strict: tool.strict ?? (isOwn ? undefined : false),
  });
}

function encodeWebSearch(tool: WebSearchTool, param: string, dropped: DropList): JsonObject {
  const { allowedDomains, blockedDomains, userLocation } = tool;
  if (tool.maxUses !== undefined) dropped.add("max_uses of web search");
  // A search that must leave out certain sites may not be widened.
  if (blockedDomains !== undefined && blockedDomains.length > 0) {
    throw invalidField(
      param,
      "the web search of this model's backend cannot block domains; name allowed ones instead.",
    );
  }
  return compact({
    type: WEB_SEARCH,
    filters: allowedDomains && { allowed_domains: allowedDomains },
    user_location: userLocation && { type: "approximate", ...userLocation },
  });
}

export function encodeToolChoice(choice: ToolChoice, tools: readonly Tool[]): unknown {
  switch (choice.type) {
    case "tool":
      return namedTool(choice.name, tools);
    case "allowed":
      return { type: "allowed_tools", mode: choice.mode, tools: choice.names.map((name) => namedTool(name, tools)) };
    default:
      return choice.type;
  }
}

function namedTool(name: string, tools: readonly Tool[]): JsonObject {
  const tool = tools.find((candidate) => candidate.name === name);
  if (tool?.kind === "custom") return { type: "custom", name };
  if (tool?.kind === "hosted") return hostedChoice(tool.origin.value);
  if (tool?.kind === "web-search") {
    return { type: tool.origin.protocol === "responses" ? tool.origin.value.type : WEB_SEARCH };
  }
  return { type: "function", name };
}

function hostedChoice({ type, server_label: server }: JsonObject): JsonObject {
  return compact({ type, server_label: server });
}
