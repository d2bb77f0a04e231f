// Makes a small value that fits a JSON Schema: the arguments of a demo tool call, the content of a structured answer.

import { isObject, type JsonObject as Schema } from "../lib/json.ts";

/** A schema comes from a client: references can form a circle, and two per level would double the work each time. */
const MAX_DEPTH = 12;
const MAX_VALUES = 500;
const MAX_ITEMS = 20;
const MAX_TEXT = 1_000;

const FORMAT_EXAMPLES: Readonly<Record<string, string>> = {
  "date-time": "2025-01-01T12:00:00Z",
  date: "2025-01-01",
  time: "12:00:00Z",
  duration: "PT1H",
  email: "someone@example.com",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/",
  "uri-reference": "/example",
  uuid: "00000000-0000-4000-8000-000000000000",
};

/**
 * The same schema always gives the same value: required properties only, the first of several choices. `pattern` and
 * conditions (not, if, dependentRequired) are not followed.
 */
export function schemaExample(schema: unknown): unknown {
  return exampleOf(schema, { root: schema, depth: 0, budget: { values: MAX_VALUES } });
}

interface Walk {
  root: unknown;
  depth: number;
  /** Shared by the whole walk. */
  budget: { values: number };
}

function exampleOf(schema: unknown, walk: Walk): unknown {
  if (!isObject(schema) || walk.depth >= MAX_DEPTH || walk.budget.values <= 0) return null;
  walk.budget.values--;
  const inner = { ...walk, depth: walk.depth + 1 };

  if ("const" in schema) return schema.const;
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return schema.enum[0];
  if ("default" in schema) return schema.default;
  if (Array.isArray(schema.examples) && schema.examples.length > 0) return schema.examples[0];
  if (typeof schema.$ref === "string") return exampleOf(resolveReference(schema.$ref, walk.root), inner);
  if (Array.isArray(schema.allOf) && schema.allOf.length > 0) return exampleOf(mergeAll(schema, walk.root), inner);
  for (const choice of [schema.anyOf, schema.oneOf]) {
    if (Array.isArray(choice) && choice.length > 0) return exampleOf(choice[0], inner);
  }
  switch (typeOf(schema)) {
    case "object":
      return exampleObject(schema, inner);
    case "array":
      return exampleArray(schema, inner);
    case "string":
      return exampleString(schema);
    case "integer":
      return exampleNumber(schema, true);
    case "number":
      return exampleNumber(schema, false);
    case "boolean":
      return true;
    default:
      return null;
  }
}

function typeOf(schema: Schema): unknown {
  if (Array.isArray(schema.type)) return schema.type.find((type) => type !== "null") ?? "null";
  if (schema.type !== undefined) return schema.type;
  if (isObject(schema.properties) || Array.isArray(schema.required)) return "object";
  return "items" in schema ? "array" : "string";
}

function exampleObject(schema: Schema, walk: Walk): Schema {
  const properties = new Map(isObject(schema.properties) ? Object.entries(schema.properties) : []);
  const names = Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === "string") : [];
  // From entries, so that a property called __proto__ is an ordinary one.
  return Object.fromEntries(names.map((name) => [name, exampleOf(properties.get(name) ?? {}, walk)]));
}

function exampleArray(schema: Schema, walk: Walk): unknown[] {
  const tuple = Array.isArray(schema.prefixItems) ? schema.prefixItems : [];
  const length = Math.min(Math.max(numberOr(schema.minItems, 0), tuple.length), MAX_ITEMS);
  return Array.from({ length }, (_, index) => exampleOf(tuple[index] ?? schema.items ?? {}, walk));
}

function exampleString(schema: Schema): string {
  const known = typeof schema.format === "string" ? FORMAT_EXAMPLES[schema.format] : undefined;
  const shortest = Math.min(numberOr(schema.minLength, 0), MAX_TEXT);
  const longest = numberOr(schema.maxLength, Number.POSITIVE_INFINITY);
  return (known ?? "example").padEnd(shortest, ".").slice(0, Math.max(0, longest));
}

/** 1 where the limits allow it, else an allowed number near it. */
function exampleNumber(schema: Schema, whole: boolean): number {
  const lowest = Math.max(numberOr(schema.minimum, -Infinity), numberOr(schema.exclusiveMinimum, -Infinity));
  const highest = Math.min(numberOr(schema.maximum, Infinity), numberOr(schema.exclusiveMaximum, Infinity));
  const step = numberOr(schema.multipleOf, whole ? 1 : 0);
  const nearest = Math.min(Math.max(1, lowest), highest);
  const candidates =
    step > 0
      ? [0, 1, -1].map((offset) => (Math.round(nearest / step) + offset) * step)
      : [nearest, (lowest + highest) / 2, nearest + 1, nearest - 1];
  const fits = (value: number) =>
    value >= lowest && value <= highest && value !== schema.exclusiveMinimum && value !== schema.exclusiveMaximum;
  return candidates.find(fits) ?? nearest;
}

/** Only references into the same document ("#/$defs/place") are followed; nothing is fetched. */
function resolveReference(reference: string, root: unknown): unknown {
  if (!reference.startsWith("#")) return undefined;
  let target: unknown = root;
  for (const part of reference.slice(1).split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof target !== "object" || target === null || !Object.hasOwn(target, key)) return undefined;
    target = (target as Schema)[key];
  }
  return target;
}

/** One object schema with the properties and requirements of all parts. */
function mergeAll(schema: Schema, root: unknown): Schema {
  const { allOf, ...own } = schema;
  const parts = [...(allOf as unknown[]), own].map((part) =>
    isObject(part) && typeof part.$ref === "string" ? resolveReference(part.$ref, root) : part,
  );
  let merged: Schema = {};
  const properties: [string, unknown][] = [];
  const required: unknown[] = [];
  for (const part of parts.filter(isObject)) {
    merged = { ...merged, ...part };
    if (isObject(part.properties)) properties.push(...Object.entries(part.properties));
    if (Array.isArray(part.required)) required.push(...part.required);
  }
  delete merged.$ref;
  if (properties.length > 0) merged.properties = Object.fromEntries(properties);
  if (required.length > 0) merged.required = [...new Set(required)];
  return merged;
}

function numberOr(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}
