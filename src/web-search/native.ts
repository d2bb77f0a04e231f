// Which backends search the web themselves when they are asked to.

import type { Backend } from "../backends/backend.ts";
import { type Operation, servedBy } from "../backends/kinds.ts";
import type { BackendKindName } from "../names.ts";

/** Vendors with a search of their own, and other gateways, which decide for themselves. Engines have none. */
const SEARCHING_KINDS: ReadonlySet<BackendKindName> = new Set(["anthropic", "gemini", "openai", "azure", "federated"]);

export function searchesItself({ kind, paths }: Pick<Backend, "kind" | "paths">, operation: Operation): boolean {
  if (!SEARCHING_KINDS.has(kind.name)) return false;
  const served = servedBy(paths, operation);
  // A chat endpoint understands only a search that was asked for in the words of its own format.
  return served !== undefined && (served !== "chat" || operation === "chat");
}
