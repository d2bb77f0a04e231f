// Tools and the choice among them -> tools and toolConfig.

import type { DropList } from "../../generation/dropped.ts";
import type { CustomTool, FunctionTool, Tool, ToolChoice, WebSearchTool } from "../../generation/tools.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import { invalidField } from "../fields.ts";
import { FREE_FORM_SCHEMA, freeFormDescription } from "../tool-input.ts";
import type { Encoding } from "./encoding.ts";
import { isFunctionName } from "./function-names.ts";
import type { ModelRules } from "./model-rules.ts";
import { cleanParameters } from "./schema-subset.ts";

export interface EncodedTools {
  tools?: JsonObject[];
  toolConfig?: JsonObject;
}

type Declared = FunctionTool | CustomTool;

export function encodeTools(encoding: Encoding): EncodedTools {
  const { request, rules, dropped } = encoding;
  const { tools, toolChoice } = request;
  const names = offeredNames(toolChoice, tools);
  const offered = tools.map((tool, index) => ({ tool, index })).filter(({ tool }) => names?.has(tool.name) !== false);
  const functions: Declared[] = [];
  const declarations: JsonObject[] = [];
  let search: WebSearchTool | undefined;
  for (const { tool, index } of offered) {
    if (isDroppable(tool, tools, rules)) {
      dropped.add(`hosted tool ${tool.name}`);
      continue;
    }
    if (tool.kind === "hosted") throw refused(index, `the tool "${tool.name}" is run by another vendor.`);
    if (tool.kind === "web-search") search = checkSearch(tool, index, dropped);
    else {
      functions.push(tool);
      declarations.push(encodeDeclaration(tool, index, dropped));
    }
  }
  if (toolChoice?.type === "none") search = undefined;
  if (search !== undefined && functions.length > 0 && !rules.mixesTools) {
    throw invalidField("tools", "this model cannot search the web and call functions in one request.");
  }
  if (request.parallelToolCalls === false && functions.length > 0) dropped.add("parallel_tool_calls");
  const encoded: JsonObject[] = [];
  if (declarations.length > 0) encoded.push({ functionDeclarations: declarations });
  if (search !== undefined) encoded.push({ googleSearch: {} });
  const config = {
    ...callingConfig(encoding, functions),
    ...(encoded.length > 1 && !encoding.target.kind.isCloud && { includeServerSideToolInvocations: true }),
  };
  return compact({
    tools: encoded.length > 0 ? encoded : undefined,
    toolConfig: Object.keys(config).length > 0 ? config : undefined,
  });
}

/** What the client can do without, and what this backend does not have, or not beside functions. */
function isDroppable(tool: Tool, tools: readonly Tool[], rules: ModelRules): boolean {
  if (tool.kind === "hosted") return tool.optional === true;
  const hasFunctions = tools.some(({ kind }) => kind === "function" || kind === "custom");
  return tool.kind === "web-search" && tool.optional === true && hasFunctions && !rules.mixesTools;
}

/** With the mode AUTO no names can be given, so only the allowed tools are declared; undefined: all. */
function offeredNames(choice: ToolChoice | undefined, tools: readonly Tool[]): ReadonlySet<string> | undefined {
  if (choice?.type !== "tool" && choice?.type !== "allowed") return undefined;
  const names = choice.type === "tool" ? [choice.name] : choice.names;
  const unknown = names.find((name) => !tools.some((tool) => tool.name === name));
  if (unknown !== undefined)
    throw invalidField("tool_choice", `the request has no tool named ${JSON.stringify(unknown)}.`);
  return choice.type === "allowed" && choice.mode === "auto" ? new Set(names) : undefined;
}

function refused(index: number, message: string): Error {
  return invalidField(`tools[${index}]`, `${message} The backend of this model has none of that type.`);
}

/** The search may not be widened beyond what the client allows. */
function checkSearch(tool: WebSearchTool, index: number, dropped: DropList): WebSearchTool {
  const { allowedDomains = [], blockedDomains = [] } = tool;
  if (allowedDomains.length > 0 || blockedDomains.length > 0) {
    throw invalidField(`tools[${index}]`, "the web search of this model's backend cannot be limited to domains.");
  }
  if (tool.maxUses !== undefined) dropped.add("max_uses of web search");
  if (tool.userLocation !== undefined) dropped.add("user_location of web search");
  return tool;
}

function encodeDeclaration(tool: Declared, index: number, dropped: DropList): JsonObject {
  if (!isFunctionName(tool.name)) {
    throw invalidField(
      `tools[${index}].name`,
      "expected at most 128 letters, digits, underscores, dots, colons or dashes, the first a letter or an underscore.",
    );
  }
  const { name } = tool;
  if (tool.kind === "custom") {
    return { name, description: freeFormDescription(tool), parametersJsonSchema: FREE_FORM_SCHEMA };
  }
  if (tool.cache !== undefined) dropped.add("cache_control on tools");
  const parameters = cleanParameters(tool.parameters);
  return { name, description: tool.description ?? "", ...compact({ parametersJsonSchema: parameters }) };
}

/** Without functions a choice among them is refused. */
function callingConfig(encoding: Encoding, functions: readonly Declared[]): JsonObject {
  const { request, rules, dropped } = encoding;
  const { toolChoice: choice } = request;
  const isForced = choice?.type === "required" || choice?.type === "tool" || choice?.type === "allowed";
  if (functions.length === 0) {
    if (isForced) dropped.add("tool_choice", "there is no function that could be called");
    return {};
  }
  const config = chosenMode(encoding, functions);
  const isFree = config === undefined || config.mode === "AUTO";
  const isStrict = functions.some((tool) => tool.kind === "function" && tool.strict === true);
  if (isFree && isStrict) {
    if (rules.validatedCalls) return { functionCallingConfig: { mode: "VALIDATED" } };
    dropped.add("strict");
  }
  return config === undefined ? {} : { functionCallingConfig: config };
}

function chosenMode({ request, dropped }: Encoding, functions: readonly Declared[]): JsonObject | undefined {
  const { toolChoice: choice } = request;
  if (choice === undefined) return undefined;
  if (choice.type !== "tool" && choice.type !== "allowed") return { mode: MODES[choice.type] };
  if (choice.type === "allowed" && choice.mode === "auto") return { mode: MODES.auto };
  const wanted = choice.type === "tool" ? [choice.name] : choice.names;
  const names = wanted.filter((name) => functions.some((tool) => tool.name === name));
  if (names.length > 0) return { mode: MODES.required, allowedFunctionNames: names };
  dropped.add("tool_choice", "the web search cannot be forced");
  return { mode: MODES.none };
}

const MODES = { auto: "AUTO", none: "NONE", required: "ANY" } as const;
