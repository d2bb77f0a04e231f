// Short ways to write JSON Schema (2020-12), which OpenAPI 3.1 takes as it is.

import type { JsonSchema } from "../config/schema/schema-export.ts";

export type Properties = Readonly<Record<string, JsonSchema>>;
/** By name, as `components.schemas` has them. */
export type Schemas = Readonly<Record<string, JsonSchema>>;

export const text: JsonSchema = { type: "string" };
export const integer: JsonSchema = { type: "integer" };
export const count: JsonSchema = { type: "integer", minimum: 0 };
export const number: JsonSchema = { type: "number" };
export const flag: JsonSchema = { type: "boolean" };
export const time: JsonSchema = { type: "string", format: "date-time" };
/** Unix time in seconds. */
export const unixTime: JsonSchema = { type: "integer", description: "Unix time in seconds." };
export const texts: JsonSchema = list(text);
/** A JSON object with any members. */
export const anyObject: JsonSchema = { type: "object", additionalProperties: true };
export const anything: JsonSchema = {};

export function list(items: JsonSchema): JsonSchema {
  return { type: "array", items };
}

export function described(schema: JsonSchema, description: string): JsonSchema {
  return { ...schema, description };
}

export function oneOfTexts(...values: readonly string[]): JsonSchema {
  return { type: "string", enum: [...values] };
}

/** A mapping with any keys. */
export function mapOf(values: JsonSchema): JsonSchema {
  return { type: "object", additionalProperties: values };
}

export function ref(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

export function anyOf(...schemas: readonly JsonSchema[]): JsonSchema {
  return { anyOf: [...schemas] };
}

export function orNull(schema: JsonSchema): JsonSchema {
  if (Array.isArray(schema.type) && schema.type.includes("null")) return schema;
  if (typeof schema.type !== "string" || schema.enum !== undefined) return anyOf(schema, { type: "null" });
  return { ...schema, type: [schema.type, "null"] };
}

/** An object that the gateway makes; clients should expect further members in later versions. */
export function shape(required: Properties, optional: Properties = {}): JsonSchema {
  return {
    type: "object",
    properties: { ...required, ...optional },
    ...(Object.keys(required).length > 0 && { required: Object.keys(required) }),
  };
}

/** An object that comes from elsewhere, or goes there: further members pass. */
export function open(required: Properties, optional: Properties = {}): JsonSchema {
  return { ...shape(required, optional), additionalProperties: true };
}

/** A request that may go on to a backend: further members pass, and null counts as left out. */
export function lenientRequest(required: Properties, optional: Properties): JsonSchema {
  return open(required, mapValues(optional, orNull));
}

/** A request to the gateway itself: further members are refused, and null counts as left out. */
export function strictRequest(required: Properties, optional: Properties = {}): JsonSchema {
  return { ...shape(required, mapValues(optional, orNull)), additionalProperties: false };
}

function mapValues<Value, Made>(
  values: Readonly<Record<string, Value>>,
  make: (value: Value) => Made,
): Record<string, Made> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, make(value)]));
}
