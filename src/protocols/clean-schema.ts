// Parts of the cleaning of JSON Schemas for APIs that refuse some keywords: those that pass, those that the description
// says instead, so that the model knows of them, and the schemas inside.

import { isObject, type JsonObject } from "../lib/json.ts";
import { optionalText } from "./reading.ts";

export function pick(schema: JsonObject, keywords: readonly string[]): JsonObject {
  return Object.fromEntries(keywords.map((keyword) => [keyword, schema[keyword]]));
}

/** The description with a note of the refused keywords; undefined where there is neither. */
export function describe(schema: JsonObject, refused: readonly string[], refusedFormat?: string): string | undefined {
  const given = refused.filter((keyword) => schema[keyword] !== undefined);
  const notes = given.map((keyword) => `${keyword}: ${JSON.stringify(schema[keyword])}`);
  if (refusedFormat !== undefined) notes.push(`format: ${refusedFormat}`);
  const text = optionalText(schema.description);
  if (notes.length === 0) return text;
  return `${text ? `${text} ` : ""}(${notes.join(", ")})`;
}

type Clean = (schema: unknown) => unknown;

/** Undefined for anything but a list of schemas. */
export function cleanList(schemas: unknown, clean: Clean): unknown[] | undefined {
  return Array.isArray(schemas) ? schemas.map(clean) : undefined;
}

/** Undefined for anything but schemas by name. */
export function cleanMembers(schemas: unknown, clean: Clean): JsonObject | undefined {
  if (!isObject(schemas)) return undefined;
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, clean(schema)]));
}
