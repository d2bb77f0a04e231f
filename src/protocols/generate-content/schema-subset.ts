// JSON Schemas as parametersJsonSchema and responseJsonSchema take them. What the API does not know is refused there, so
// it is written in words it knows, or told in the description; the client validates against its own schema anyway.

import { compact, isObject, type JsonObject } from "../../lib/json.ts";
import { cleanList, cleanMembers, describe, pick } from "../clean-schema.ts";
import { arrayOf, filled, objectOf, objectsOf, optionalBoolean, textOf, textsOf } from "../reading.ts";

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
  const nested = (value: unknown): JsonObject => clean(objectOf(value), depth + 1);
  const { $ref, format, items, additionalProperties } = schema;
  const hasDefinitions = isObject(schema.definitions) || isObject(schema.$defs);
  const definitions = hasDefinitions ? { ...objectOf(schema.definitions), ...objectOf(schema.$defs) } : undefined;
  const $defs = cleanMembers(definitions, nested);
  // No other member may stand beside a reference, except those that begin with a dollar.
  if (typeof $ref === "string") return compact({ $ref: $ref.replace(/^#\/definitions\//, "#/$defs/"), $defs });
  const isKnown = FORMATS.has(format);
  const described: JsonObject = compact({
    type: cleanType(schema.type),
    ...pick(schema, COPIED),
    format: isKnown ? format : undefined,
    description: describe(schema, TOLD, isKnown || format === undefined ? undefined : textOf(format)) || undefined,
  });
  addValues(described, schema);
  // Older drafts write tuples as a list under items.
  const prefixItems = cleanList(schema.prefixItems ?? items, nested);
  const needsItems = described.type === "array" && prefixItems === undefined;
  return compact({
    ...described,
    anyOf: cleanList(schema.anyOf ?? schema.oneOf, nested),
    properties: cleanMembers(schema.properties, nested),
    required: filled(textsOf(schema.required)),
    additionalProperties: isObject(additionalProperties)
      ? nested(additionalProperties)
      : optionalBoolean(additionalProperties),
    prefixItems,
    items: isObject(items) ? nested(items) : needsItems ? {} : undefined,
    $defs,
  });
}

function cleanType(type: unknown): unknown {
  if (typeof type === "string") return TYPES.has(type.toLowerCase()) ? type.toLowerCase() : undefined;
  if (!Array.isArray(type)) return undefined;
  const known = type.map((entry) => textOf(entry).toLowerCase()).filter((entry) => TYPES.has(entry));
  return known.length > 1 ? known : known[0];
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
