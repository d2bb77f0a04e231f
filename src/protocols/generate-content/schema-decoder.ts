// Google's subset of OpenAPI schemas, as tools and forms of answers are declared in it, -> JSON Schema
// (google.ai.generativelanguage.v1beta.Schema: types in capital letters, nullable, counts as text, an order of properties).

import { isObject, type JsonObject } from "../../lib/json.ts";
import { objectOf, textOf } from "../reading.ts";
import { inCamelCase, listOf } from "./members.ts";

/** Members with a schema, with a list of them, and with one for each name. */
const ONE: ReadonlySet<string> = new Set(["items", "additionalProperties"]);
const SEVERAL: ReadonlySet<string> = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const NAMED: ReadonlySet<string> = new Set(["properties", "$defs", "defs"]);

/** int64 in Google's JSON is a text. */
const COUNTS: ReadonlySet<string> = new Set([
  ...["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"],
]);

/** JSON Schema has no word for them. */
const WITHOUT_MEANING: ReadonlySet<string> = new Set(["propertyOrdering", "nullable", "example", "format"]);

/** Formats that JSON Schema knows, too; int32, float and the like only say how a number is kept. */
const FORMATS: ReadonlySet<unknown> = new Set(["date-time", "date", "time", "duration", "email", "uri", "uuid"]);

export function decodeSchema(value: unknown): JsonObject {
  const given = inCamelCase(objectOf(value));
  const schema: JsonObject = {};
  for (const [name, member] of Object.entries(given)) {
    if (ONE.has(name)) schema[name] = isObject(member) ? decodeSchema(member) : member;
    else if (SEVERAL.has(name)) schema[name] = listOf(member).map(decodeSchema);
    else if (NAMED.has(name)) schema[name] = decodeNamed(member);
    else if (COUNTS.has(name)) schema[name] = typeof member === "string" ? Number(member) : member;
    else if (!WITHOUT_MEANING.has(name)) schema[name] = member;
  }
  if (FORMATS.has(given.format)) schema.format = given.format;
  if (typeof given.type === "string") schema.type = given.type.toLowerCase();
  if (schema.type === "type_unspecified") delete schema.type;
  return given.nullable === true ? orNull(schema) : schema;
}

function decodeNamed(value: unknown): JsonObject {
  return Object.fromEntries(Object.entries(objectOf(value)).map(([name, schema]) => [name, decodeSchema(schema)]));
}

function orNull(schema: JsonObject): JsonObject {
  const type = textOf(schema.type);
  if (type === "") return { anyOf: [schema, { type: "null" }] };
  const values = Array.isArray(schema.enum) ? { enum: [...(schema.enum as unknown[]), null] } : {};
  return { ...schema, ...values, type: [type, "null"] };
}
