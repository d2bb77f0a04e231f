// Every path of a JSON Schema, to prove that documents name them all.

import type { JsonSchema } from "../../src/config/schema/schema-export.ts";
import { alternatives } from "../../src/config/schema/schema-path.ts";

/** With "[]" for a list entry and "<name>" for a free key. */
export function allPaths(schema: JsonSchema, path: readonly string[] = []): { path: string[]; schema: JsonSchema }[] {
  const found: { path: string[]; schema: JsonSchema }[] = path.length > 0 ? [{ path: [...path], schema }] : [];
  for (const branch of alternatives(schema)) {
    for (const [key, child] of Object.entries(branch.properties ?? {})) found.push(...allPaths(child, [...path, key]));
    if (branch.items) found.push(...allPaths(branch.items, [...path, "[]"]));
    if (typeof branch.additionalProperties === "object") {
      found.push(...allPaths(branch.additionalProperties, [...path, "<name>"]));
    }
  }
  return found;
}
