// JSON Schemas as parametersJsonSchema and responseJsonSchema take them. What the API does not know is refused there, so
// it is written in words it knows, or told in the description; the client validates against its own schema anyway.

import { isObject, type JsonObject } from "../../lib/json.ts";
import { arrayOf, objectOf, objectsOf, textOf, textsOf } from "../reading.ts";

const COPIED = ["$id", "$anchor", "title", "minItems", "maxItems", "minimum", "maximum", "propertyOrdering"] as const;

/** Told in the description. */
const TOLD = [
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "pattern",
  "uniqueItems",
  "minProperties",
  "maxProperties",
  "patternProperties",
  "propertyNames",
  "contains",
  "not",
  "if",
  "then",
  "else",
  "default",
] as const;

const FORMATS: ReadonlySet<unknown> = new Set(["date-time", "date", "time", "float", "double", "int32", "int64"]);

const TYPES: ReadonlySet<string> = new Set(["string", "number", "integer", "boolean", "array", "object", "null"]);

/** Deeper schemas are cut off there: anything goes. */
const MAX_DEPTH = 48;

export function cleanSchema(schema: JsonObject): JsonObject {
  return clean(schema, 0);
}

/** The schema of a function's arguments; undefined for a function without any. */
export function cleanParameters(schema: JsonObject | undefined): JsonObject | undefined {
  if (schema === undefined) return undefined;
  const cleaned = clean(schema, 0);
  const { properties, additionalProperties } = cleaned;
  const hasProperties = isObject(properties) && Object.keys(properties).length > 0;
  const isOpen = isObject(additionalProperties) || additionalProperties === true;
  const isComposed = ["$ref", "anyOf"].some((member) => cleaned[member] !== undefined);
  if (!hasProperties && !isOpen && !isComposed) return undefined;
  return isComposed ? cleaned : { ...cleaned, type: "object" };
}

function clean(given: JsonObject, depth: number): JsonObject {
  if (depth > MAX_DEPTH) return {};
  const schema = Array.isArray(given.allOf) ? mergeAllOf(given, depth) : given;
  const result: JsonObject = {};
  if (typeof schema.$ref === "string") {
    // No other member may stand beside a reference, except those that begin with a dollar.
    result.$ref = schema.$ref.replace(/^#\/definitions\//, "#/$defs/");
    return withDefinitions(result, schema, depth);
  }
  const type = cleanType(schema.type);
  if (type !== undefined) result.type = type;
  for (const key of COPIED) {
    if (schema[key] !== undefined) result[key] = schema[key];
  }
  if (FORMATS.has(schema.format)) result.format = schema.format;
  const description = describe(schema);
  if (description !== "") result.description = description;
  addValues(result, schema);
  addNested(result, schema, depth);
  return withDefinitions(result, schema, depth);
}

function cleanType(type: unknown): unknown {
  if (typeof type === "string") return TYPES.has(type.toLowerCase()) ? type.toLowerCase() : undefined;
  if (!Array.isArray(type)) return undefined;
  const known = type.map((entry) => textOf(entry).toLowerCase()).filter((entry) => TYPES.has(entry));
  return known.length > 1 ? known : known[0];
}

/** Members that hold schemas. */
function addNested(result: JsonObject, schema: JsonObject, depth: number): void {
  const nested = (value: unknown): JsonObject => clean(objectOf(value), depth + 1);
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(alternatives)) result.anyOf = alternatives.map(nested);
  if (isObject(schema.properties)) result.properties = mapMembers(schema.properties, nested);
  const required = textsOf(schema.required);
  if (required.length > 0) result.required = required;
  const { additionalProperties } = schema;
  if (typeof additionalProperties === "boolean") result.additionalProperties = additionalProperties;
  else if (isObject(additionalProperties)) result.additionalProperties = nested(additionalProperties);
  // Older drafts write tuples as a list under items.
  const tuple = schema.prefixItems ?? (Array.isArray(schema.items) ? schema.items : undefined);
  if (Array.isArray(tuple)) result.prefixItems = tuple.map(nested);
  if (isObject(schema.items)) result.items = nested(schema.items);
  else if (result.type === "array" && result.prefixItems === undefined) result.items = {};
}

function withDefinitions(result: JsonObject, schema: JsonObject, depth: number): JsonObject {
  for (const key of ["definitions", "$defs"]) {
    const definitions = schema[key];
    if (!isObject(definitions)) continue;
    const cleaned = mapMembers(definitions, (value) => clean(objectOf(value), depth + 1));
    result.$defs = isObject(result.$defs) ? { ...result.$defs, ...cleaned } : cleaned;
  }
  return result;
}

function mapMembers(members: JsonObject, map: (value: unknown) => JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name, map(value)]));
}

/** const and enum: only strings and numbers can be listed. */
function addValues(result: JsonObject, schema: JsonObject): void {
  const given: unknown[] | undefined =
    schema.const !== undefined ? [schema.const] : Array.isArray(schema.enum) ? schema.enum : undefined;
  if (given === undefined) return;
  const values = given.filter((value) => typeof value === "string" || typeof value === "number");
  const types = [...new Set(given.map(typeOf))];
  if (result.type === undefined) result.type = types.length > 1 ? types : types[0];
  // A list without its null or its booleans would forbid them.
  const isWhole = given.every((value) => value === null || typeof value === "string" || typeof value === "number");
  if (values.length > 0 && isWhole) {
    result.enum = values;
    if (given.includes(null)) result.type = withNull(result.type);
  } else if (!given.every((value) => value === null)) {
    const note = `One of: ${given.map((value) => JSON.stringify(value)).join(", ")}.`;
    result.description = result.description === undefined ? note : `${result.description} ${note}`;
  }
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value;
}

function withNull(type: unknown): unknown {
  const types: unknown[] = Array.isArray(type) ? type : [type];
  return types.includes("null") ? type : [...types, "null"];
}

function describe(schema: JsonObject): string {
  const notes: string[] = [];
  for (const key of TOLD) {
    if (schema[key] !== undefined) notes.push(`${key}: ${JSON.stringify(schema[key])}`);
  }
  if (schema.format !== undefined && !FORMATS.has(schema.format)) notes.push(`format: ${textOf(schema.format)}`);
  const text = textOf(schema.description);
  if (notes.length === 0) return text;
  const note = `(${notes.join(", ")})`;
  return text === "" ? note : `${text} ${note}`;
}

/** What all of the schemas say in one: properties and required are joined, of other members the first one counts. */
function mergeAllOf({ allOf, ...rest }: JsonObject, depth: number): JsonObject {
  if (depth > MAX_DEPTH) return rest;
  let merged: JsonObject = rest;
  for (const entry of objectsOf(allOf)) {
    const part = Array.isArray(entry.allOf) ? mergeAllOf(entry, depth + 1) : entry;
    const hasProperties = isObject(merged.properties) || isObject(part.properties);
    const properties = { ...objectOf(part.properties), ...objectOf(merged.properties) };
    const required = new Set([...arrayOf(merged.required), ...arrayOf(part.required)]);
    merged = {
      ...part,
      ...merged,
      ...(hasProperties && { properties }),
      ...(required.size > 0 && { required: [...required] }),
    };
  }
  return merged;
}
