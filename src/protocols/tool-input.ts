// The input of a tool for formats whose tools take nothing but a JSON object: what a model wrote that is none, and tools
// of a free form.

import type { ToolCallPart } from "../generation/content.ts";
import type { CustomTool } from "../generation/tools.ts";
import { type JsonObject, parseObject } from "../lib/json.ts";
import { isBlank } from "./reading.ts";

/** The one member of a free-form tool's input. Encoders for clients undo it by name. */
export const FREE_FORM_MEMBER = "input";

export const FREE_FORM_SCHEMA = {
  type: "object",
  properties: { [FREE_FORM_MEMBER]: { type: "string", description: "The whole input of the tool." } },
  required: [FREE_FORM_MEMBER],
} as const;

/** Where the documentation of the Messages API puts arguments that are no JSON object. */
const INVALID_JSON_MEMBER = "INVALID_JSON";

/** An object, whatever a model wrote: history must not fail because of an old mistake. */
export function inputOf({ custom, arguments: text }: ToolCallPart): JsonObject {
  if (custom === true) return { [FREE_FORM_MEMBER]: text };
  // Cut off or not JSON at all: kept as text.
  return isBlank(text) ? {} : (parseObject(text) ?? { [INVALID_JSON_MEMBER]: text });
}

/** A free-form tool becomes one with a single string; its grammar is described in words. */
export function freeFormDescription({ description = "", format }: CustomTool): string {
  const grammar = format === undefined || format.type === "text" ? "" : `Format: ${JSON.stringify(format)}`;
  return [description, grammar].filter((line) => line !== "").join("\n\n");
}
