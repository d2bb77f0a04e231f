// Whether a role may send a request, by the operations that the gateway says it may not.

import type { CurlRequest } from "./curl.ts";

/** @param denied - with the method before the path, whose parameters are {name}, or {name...} for several segments */
export function isDenied({ method, path }: Pick<CurlRequest, "method" | "path">, denied: readonly string[]): boolean {
  const asked = `${method} /${path.split("?", 1)[0]}`;
  return denied.some((operation) => patternOf(operation).test(asked));
}

function patternOf(operation: string): RegExp {
  const literal = operation.replaceAll(/[.*+?^$()|[\]\\]/g, "\\$&");
  return new RegExp(`^${literal.replaceAll(/\{\w+(\\\.\\\.\\\.)?\}/g, (_, several) => (several ? ".+" : "[^/]+"))}$`);
}
