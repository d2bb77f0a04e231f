// The configuration as JSON Schema (2020-12), from the schemas that validate it.

import { z } from "zod";
import type { JsonSchema } from "../config/schema/schema-export.ts";
import { backendsSection } from "../config/sections/backends.ts";
import { SECTIONS } from "../config/sections/registry.ts";
import { madeFor } from "./change-schemas.ts";
import { anyOf, described, ref } from "./json-schema.ts";

/** Names of sections, in their order. */
export const SECTION_NAMES: readonly string[] = SECTIONS.map(({ name }) => name);

export const BACKEND_SCHEMA = "BackendConfig";

/** Every section, its backends' entry, and the document they make up. */
export function configSchemas(): Record<string, JsonSchema> {
  const schemas: Record<string, JsonSchema> = {};
  for (const { name, schema, description } of SECTIONS) {
    schemas[componentOf(name)] = { ...toSchema(schema), title: name, description };
  }
  const { items, ...backends } = toSchema(backendsSection.schema);
  schemas[BACKEND_SCHEMA] = { ...items, title: "backend" };
  schemas[componentOf("backends")] = {
    ...backends,
    title: "backends",
    description: backendsSection.description,
    items: ref(BACKEND_SCHEMA),
  };
  schemas.Config = {
    type: "object",
    title: "Signalbox configuration",
    properties: Object.fromEntries(SECTION_NAMES.map((name) => [name, sectionRef(name)])),
    additionalProperties: false,
  };
  return schemas;
}

/** The schema of a section. */
export function sectionRef(name: string): JsonSchema {
  return ref(componentOf(name));
}

/** A section whole, bare or under config. */
export function sectionBody(): JsonSchema {
  const bare = anyOf(...SECTION_NAMES.map(sectionRef));
  return anyOf(bare, described(wrapped(bare), "The same, wrapped, with the version that the change is made for."));
}

/** A JSON merge patch (RFC 7396) for a section, bare or under config. */
export function sectionPatch(): JsonSchema {
  return {
    description: "A JSON merge patch (RFC 7396): null removes, arrays are replaced whole. Bare or under config.",
    type: ["object", "array"],
  };
}

function wrapped(schema: JsonSchema): JsonSchema {
  return {
    type: "object",
    properties: { config: schema, ...madeFor },
    required: ["config"],
    additionalProperties: false,
  };
}

/** A section with its name, each with the schema of that section. */
export function sectionView(others: Record<string, JsonSchema>): JsonSchema {
  const variants = SECTION_NAMES.map((name) => ({
    type: "object",
    title: name,
    properties: { section: { const: name }, config: sectionRef(name), ...others },
    required: ["section", "config", ...Object.keys(others)],
  }));
  return { oneOf: variants };
}

/** What an operator may write; parts that JSON Schema cannot say accept anything. */
function toSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as JsonSchema;
  return rest;
}

function componentOf(section: string): string {
  return `${section.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Config`;
}
