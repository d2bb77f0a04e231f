// Which backends search the web themselves when they are asked to.

import type { Backend } from "../backends/backend.ts";
import { formatOf, type Operation, servedBy } from "../backends/operations.ts";
import { backendProtocol } from "../protocols/registry.ts";

export function searchesItself({ kind, paths }: Pick<Backend, "kind" | "paths">, operation: Operation): boolean {
  if (kind.searches === undefined) return false;
  const served = servedBy(paths, operation);
  if (served === undefined || served === operation) return served !== undefined;
  const format = formatOf(served);
  return format !== undefined && backendProtocol(format).carriesSearch === true;
}
