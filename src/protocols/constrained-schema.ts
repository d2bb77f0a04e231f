// JSON Schemas for constrained decoding: what the Messages API and Bedrock refuse there is taken out and told in words, so
// that the model still knows of it. The client validates against its own schema anyway.

import { compact, isObject, type JsonObject } from "../lib/json.ts";
import { cleanList, cleanMembers, describe, pick } from "./clean-schema.ts";

const FORMATS: ReadonlySet<unknown> = new Set([
  "date-time",
  "time",
  "date",
  "duration",
  "email",
  "hostname",
  "uri",
  "ipv4",
  "ipv6",
  "uuid",
]);

const COPIED = ["$schema", "$id", "title", "type", "const", "enum", "default", "required"] as const;

/** Refused by the constrained decoder; their meaning moves into the description. */
const CONSTRAINTS = [
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "pattern",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minProperties",
  "maxProperties",
  "patternProperties",
  "propertyNames",
  "contains",
  "prefixItems",
  "not",
  "if",
  "then",
  "else",
] as const;

const MAX_DEPTH = 64;

/** Undefined for a schema that cannot be used: references in a circle or to elsewhere, or nesting without end. */
export function cleanSchema(schema: JsonObject): JsonObject | undefined {
  if (!hasFiniteDepth(schema, 0) || hasUnusableReferences(schema)) return undefined;
  return clean(schema);
}

function clean(schema: JsonObject): JsonObject {
  const { $ref, type, format, properties } = schema;
  const isKnown = FORMATS.has(format);
  const definitions = {
    $defs: cleanMembers(schema.$defs, cleanNested),
    definitions: cleanMembers(schema.definitions, cleanNested),
  };
  if (typeof $ref === "string") return compact({ $ref, ...definitions });
  const isOfObjects = [type].flat().includes("object") || properties !== undefined;
  return compact({
    ...pick(schema, COPIED),
    description: describe(schema, CONSTRAINTS, isKnown ? undefined : JSON.stringify(format)),
    format: isKnown ? format : undefined,
    anyOf: cleanList(schema.anyOf ?? schema.oneOf, cleanNested),
    allOf: cleanList(schema.allOf, cleanNested),
    items: cleanNested(schema.items),
    properties: cleanMembers(properties, cleanNested),
    additionalProperties: isOfObjects ? false : undefined,
    ...definitions,
  });
}

function cleanNested(schema: unknown): unknown {
  return isObject(schema) ? clean(schema) : schema;
}

function hasFiniteDepth(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth < MAX_DEPTH && Object.values(value).every((member) => hasFiniteDepth(member, depth + 1));
}

/** Follows every reference from every definition; a path that meets itself is recursion. */
function hasUnusableReferences(root: JsonObject): boolean {
  const done = new Set<string>();
  const visit = (schema: unknown, path: ReadonlySet<string>): boolean =>
    referencesIn(schema).some((reference) => {
      if (done.has(reference)) return false;
      if (path.has(reference)) return true;
      const target = resolve(root, reference);
      if (target === undefined || target === root || visit(target, new Set([...path, reference]))) return true;
      done.add(reference);
      return false;
    });
  return visit(root, new Set());
}

function referencesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  if (!isObject(value)) return [];
  const own = typeof value.$ref === "string" ? [value.$ref] : [];
  return own.concat(Object.values(value).flatMap(referencesIn));
}

function resolve(root: JsonObject, reference: string): unknown {
  if (reference !== "#" && !reference.startsWith("#/")) return undefined;
  let target: unknown = root;
  for (const step of reference.split("/").slice(1)) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    target =
      typeof target === "object" && target !== null && Object.hasOwn(target, name)
        ? (target as JsonObject)[name]
        : undefined;
  }
  return target;
}
