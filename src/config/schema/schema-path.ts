// Finds the part of the JSON Schema that governs a path of the document.

import type { Path, PathSegment } from "../values/values.ts";
import type { JsonSchema } from "./schema-export.ts";

/** A schema, or the branches of a choice. */
export function alternatives(schema: JsonSchema): JsonSchema[] {
  const branches = schema.anyOf ?? schema.oneOf;
  return branches === undefined ? [schema] : branches.flatMap(alternatives);
}

export function acceptsType(schema: JsonSchema, type: string): boolean {
  return alternatives(schema).some((branch) => {
    if (branch.type === undefined) return branch.enum === undefined && branch.const === undefined;
    return Array.isArray(branch.type) ? branch.type.includes(type) : branch.type === type;
  });
}

export function childSchema(schema: JsonSchema, segment: PathSegment): JsonSchema | undefined {
  for (const branch of alternatives(schema)) {
    if (typeof segment === "number") {
      if (branch.items) return branch.items;
      continue;
    }
    if (branch.properties && Object.hasOwn(branch.properties, segment)) return branch.properties[segment];
    if (typeof branch.additionalProperties === "object") return branch.additionalProperties;
  }
  return undefined;
}

export function schemaAt(schema: JsonSchema, path: Path): JsonSchema | undefined {
  let current: JsonSchema | undefined = schema;
  for (const segment of path) {
    if (current === undefined) return undefined;
    current = childSchema(current, segment);
  }
  return current;
}

/** The keys an object may have; empty where any key is allowed. */
export function knownKeys(schema: JsonSchema | undefined): string[] {
  return schema === undefined ? [] : alternatives(schema).flatMap((branch) => Object.keys(branch.properties ?? {}));
}
