// Whether a request offers a search of the web as a tool, which the formats that have one write alike.

import { isObject, type JsonObject } from "../lib/json.ts";

export function hasSearchTool({ tools }: JsonObject): boolean {
  return Array.isArray(tools) && tools.some(isSearchTool);
}

/** A Responses client says of a search whether it may leave what its vendor has stored; there is nothing stored here. */
function isSearchTool(tool: unknown): boolean {
  if (!isObject(tool) || typeof tool.type !== "string") return false;
  return tool.type.startsWith("web_search") && tool.external_web_access !== false;
}
