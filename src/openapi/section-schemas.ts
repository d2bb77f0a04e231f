// The configuration as JSON Schema (2020-12), from the schemas that validate it.

import { z } from "zod";
import type { JsonSchema } from "../config/schema/schema-export.ts";
import { backendsSection } from "../config/sections/backends.ts";
import { SECTIONS } from "../config/sections/registry.ts";
import { madeFor } from "./change-schemas.ts";
import { anyOf, constant, orNull, type Properties, ref, shape, strictRequest } from "./json-schema.ts";

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

export function sectionRef(name: string): JsonSchema {
  return ref(componentOf(name));
}

/** The parts of an operation in which sections differ. */
export function eachSection<Differences>(
  make: (section: string) => Differences,
): Readonly<Record<string, Differences>> {
  return Object.fromEntries(SECTION_NAMES.map((name) => [name, make(name)]));
}

/** A section whole, bare or under config, with the version that the change is made for. */
export function sectionBody(name: string): JsonSchema {
  return anyOf(withVersion(sectionSchema(name)), wrapped(sectionRef(name)));
}

/** A JSON merge patch (RFC 7396) of a section, bare or under config: null removes, arrays are replaced whole. */
export function sectionPatch(name: string): JsonSchema {
  const patch = mergePatch(sectionSchema(name));
  return anyOf(withVersion(patch), wrapped(patch));
}

/** A JSON merge patch of an object, with the version that the change is made for. */
export function entryPatch(entry: JsonSchema): JsonSchema {
  return withVersion(mergePatch(entry));
}

/** An entry of a list in a section, such as ["api_keys", "keys"]. */
export function entrySchema(section: string, key?: string): JsonSchema {
  const whole = sectionSchema(section);
  const list = key === undefined ? whole : (whole.properties as Record<string, JsonSchema>)[key];
  return (list as { items: JsonSchema }).items;
}

/** A section as GET answers it. */
export function sectionView(name: string, others: Properties): JsonSchema {
  return shape({ section: constant(name), config: sectionRef(name), ...others });
}

function sectionSchema(name: string): JsonSchema {
  const section = SECTIONS.find((each) => each.name === name);
  if (section === undefined) throw new Error(`there is no section ${name}`);
  return toSchema(section.schema);
}

function withVersion(schema: JsonSchema): JsonSchema {
  const { type, properties = {} } = schema as { type?: unknown; properties?: Properties };
  return type === "object" ? { ...schema, properties: { version: orNull(madeFor.version), ...properties } } : schema;
}

function wrapped(config: JsonSchema): JsonSchema {
  return strictRequest({ config }, madeFor);
}

/** No member is required, each may be null, and the members of objects that are merged in turn. */
function mergePatch(schema: JsonSchema): JsonSchema {
  const { type, properties, additionalProperties, required: _, default: __, ...rest } = schema;
  if (type !== "object") return schema;
  const patched = (value: unknown): JsonSchema => orNull(mergePatch(value as JsonSchema));
  return {
    ...rest,
    type,
    ...(properties !== undefined && {
      properties: Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, patched(value)])),
    }),
    ...(typeof additionalProperties === "object"
      ? { additionalProperties: patched(additionalProperties) }
      : additionalProperties !== undefined && { additionalProperties }),
  };
}

/** Describes the input that an operator may write; parts that JSON Schema cannot express accept anything. */
function toSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as JsonSchema;
  return rest;
}

function componentOf(section: string): string {
  return `${section.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Config`;
}
