// Which backends search the web themselves when they are asked to.

import type { Backend } from "../backends/backend.ts";
import { type Operation, servedBy } from "../backends/kinds.ts";
import { isObject, type JsonObject } from "../lib/json.ts";

/** Whether a request of any client's format offers a search of the web as a tool. */
export function hasSearchTool({ tools }: JsonObject): boolean {
  return Array.isArray(tools) && tools.some(isSearchTool);
}

/** A Responses client says of a search whether it may leave what its vendor has stored; there is nothing stored here. */
function isSearchTool(tool: unknown): boolean {
  if (!isObject(tool) || typeof tool.type !== "string") return false;
  return tool.type.startsWith("web_search") && tool.external_web_access !== false;
}

/**
 * Whether a backend that would be asked by its chat endpoint can carry a search that a client of another format asks for
 * by its Responses endpoint: the chat format has no words for it.
 */
export function searchesInResponses({ kind, paths }: Pick<Backend, "kind" | "paths">): boolean {
  return paths.responses !== undefined && kind.searches === "in-responses";
}

export function searchesItself({ kind, paths }: Pick<Backend, "kind" | "paths">, operation: Operation): boolean {
  if (kind.searches === undefined) return false;
  const served = servedBy(paths, operation);
  // A chat endpoint understands only a search that was asked for in the words of its own format.
  return served !== undefined && (served !== "chat" || operation === "chat");
}
