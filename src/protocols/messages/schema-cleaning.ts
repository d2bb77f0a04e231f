// JSON Schemas for constrained decoding: what the Messages API refuses there is taken out and told in words instead, so
// that the model still knows of it. The client validates against its own schema anyway.

import { isObject, type JsonObject } from "../../lib/json.ts";

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
  if (typeof schema.$ref === "string") return { $ref: schema.$ref, ...cleanDefinitions(schema) };
  const result: JsonObject = {};
  for (const key of COPIED) {
    if (schema[key] !== undefined) result[key] = schema[key];
  }
  const description = describeConstraints(schema);
  if (description !== undefined) result.description = description;
  if (FORMATS.has(schema.format)) result.format = schema.format;
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(alternatives)) result.anyOf = alternatives.map(cleanNested);
  if (Array.isArray(schema.allOf)) result.allOf = schema.allOf.map(cleanNested);
  if (schema.items !== undefined) result.items = cleanNested(schema.items);
  if (isObject(schema.properties)) result.properties = cleanEach(schema.properties);
  if (isObjectSchema(schema)) result.additionalProperties = false;
  return { ...result, ...cleanDefinitions(schema) };
}

function cleanNested(schema: unknown): unknown {
  return isObject(schema) ? clean(schema) : schema;
}

function cleanEach(schemas: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, cleanNested(schema)]));
}

function cleanDefinitions(schema: JsonObject): JsonObject {
  const result: JsonObject = {};
  for (const key of ["$defs", "definitions"]) {
    const definitions = schema[key];
    if (isObject(definitions)) result[key] = cleanEach(definitions);
  }
  return result;
}

function isObjectSchema({ type, properties }: JsonObject): boolean {
  return type === "object" || (Array.isArray(type) && type.includes("object")) || properties !== undefined;
}

function describeConstraints(schema: JsonObject): string | undefined {
  const notes: string[] = [];
  for (const key of CONSTRAINTS) {
    if (schema[key] !== undefined) notes.push(`${key}: ${JSON.stringify(schema[key])}`);
  }
  if (schema.format !== undefined && !FORMATS.has(schema.format)) {
    notes.push(`format: ${JSON.stringify(schema.format)}`);
  }
  const text = typeof schema.description === "string" ? schema.description : undefined;
  if (notes.length === 0) return text;
  const note = `(${notes.join(", ")})`;
  return text === undefined || text === "" ? note : `${text} ${note}`;
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
