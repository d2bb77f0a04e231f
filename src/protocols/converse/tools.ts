// Tools and the choice among them -> toolConfig.

import type { CustomTool, FunctionTool } from "../../generation/tools.ts";
import { compact, type JsonObject } from "../../lib/json.ts";
import { cleanSchema } from "../constrained-schema.ts";
import { invalidField } from "../fields.ts";
import { FREE_FORM_SCHEMA, freeFormDescription } from "../tool-input.ts";
import { cachePoint } from "./cache-points.ts";
import { historicName } from "./conversation.ts";
import type { Encoding } from "./encoding.ts";
import type { ConverseBlock } from "./wire.ts";

export interface EncodedTools {
  /** Empty: there is no toolConfig. */
  tools: ConverseBlock[];
  toolChoice?: JsonObject;
}

const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/;

export function encodeTools(encoding: Encoding): EncodedTools {
  const { request, dropped } = encoding;
  const { choice, names } = allowedChoice(encoding);
  const tools: ConverseBlock[] = [];
  for (const [index, tool] of request.tools.entries()) {
    if (tool.kind === "hosted" || tool.kind === "web-search") {
      if (tool.optional !== true) {
        throw invalidField(
          `tools[${index}]`,
          `the tool "${tool.name}" is run by another vendor; this model's backend has none of that type.`,
        );
      }
      dropped.add(`hosted tool ${tool.name}`);
    } else if (names?.has(tool.name) !== false) tools.push(...encodeTool(tool, index, encoding));
  }
  if (request.parallelToolCalls === false && tools.length > 0) dropped.add("parallel_tool_calls");
  if (tools.length === 0) return { tools: historicTools(encoding) };
  return { tools, ...compact({ toolChoice: choice }) };
}

interface AllowedChoice {
  choice?: JsonObject;
  /** Only these tools are offered; undefined: all. */
  names?: ReadonlySet<string>;
}

/** There is no word for "none", and no list of names: tools that may not be called are not offered. */
function allowedChoice(encoding: Encoding): AllowedChoice {
  const { toolChoice: asked } = encoding.request;
  switch (asked?.type) {
    case undefined:
    case "auto":
      return {};
    case "none":
      return { names: new Set() };
    case "required":
      return anyOf(encoding);
    case "tool":
      if (encoding.rules.toolChoice.includes("tool")) return { choice: { tool: { name: asked.name } } };
      // Among one tool, any is that one.
      return { names: new Set([asked.name]), ...anyOf(encoding) };
    case "allowed": {
      const names = new Set(asked.names);
      return asked.mode === "auto" ? { names } : { names, ...anyOf(encoding) };
    }
  }
}

function anyOf({ rules, dropped }: Encoding): Pick<AllowedChoice, "choice"> {
  if (rules.toolChoice.includes("any")) return { choice: { any: {} } };
  dropped.add("tool_choice", "the model cannot be forced to call a tool");
  return {};
}

/** A conversation with calls is refused without the definitions of tools: those that were called stand for them. */
function historicTools({ request, dropped }: Encoding): ConverseBlock[] {
  const called = request.messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "tool-call" && part.serverSide !== true ? [historicName(part.name)] : [])),
  );
  if (called.length === 0) return [];
  dropped.add("tools", "a conversation with calls needs tools here; those of earlier turns are named");
  return [...new Set(called)].map((name) => toolSpec(name, "A tool of earlier turns. It is not available.", EMPTY));
}

const EMPTY = { type: "object", properties: {} };

function toolSpec(name: string, description: string | undefined, schema: JsonObject, strict?: true): ConverseBlock {
  // An empty description is refused.
  const words = description === undefined || description === "" ? undefined : description;
  return { toolSpec: { name, ...compact({ description: words, strict }), inputSchema: { json: schema } } };
}

function encodeTool(tool: FunctionTool | CustomTool, index: number, encoding: Encoding): ConverseBlock[] {
  if (!TOOL_NAME.test(tool.name)) {
    throw invalidField(`tools[${index}].name`, "expected 1 to 64 letters, digits, underscores or dashes.");
  }
  if (tool.kind === "custom") return [toolSpec(tool.name, freeFormDescription(tool), FREE_FORM_SCHEMA)];
  const { name, description, parameters, strict, cache } = tool;
  const schema: JsonObject = { ...EMPTY, ...parameters };
  const cleaned = strict === true && encoding.rules.structuredOutput ? cleanSchema(schema) : undefined;
  if (strict === true && cleaned === undefined) {
    encoding.dropped.add("strict", "the model or the schema does not allow it");
  }
  return [toolSpec(name, description, cleaned ?? schema, cleaned && true), ...cachePoint(cache, "tools", encoding)];
}
