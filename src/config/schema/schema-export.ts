// JSON Schema (draft-07) of the configuration document, made from the same source as its validation.

import { z } from "zod";
import { lazily } from "../../lib/lazily.ts";
import { documentSchema, SECTIONS } from "../sections/registry.ts";

export interface JsonSchema {
  $schema?: string;
  title?: string;
  description?: string;
  type?: string | string[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  additionalProperties?: boolean | JsonSchema;
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  [keyword: string]: unknown;
}

/** Made once; nobody may change it. */
export const documentJsonSchema = lazily((): JsonSchema => {
  const schema = toJsonSchema(documentSchema);
  schema.title = "Signalbox configuration";
  for (const section of SECTIONS) {
    const properties = schema.properties?.[section.name];
    if (properties) properties.description = section.description;
  }
  return schema;
});

/** The schema of one section; undefined for an unknown one. */
export function sectionJsonSchema(name: string): JsonSchema | undefined {
  const section = SECTIONS.find((candidate) => candidate.name === name);
  if (section === undefined) return undefined;
  return { ...toJsonSchema(section.schema), title: section.name, description: section.description };
}

/** What an operator may write (`io: input`); parts that JSON Schema cannot say accept anything. */
export function toJsonSchema(schema: z.ZodType): JsonSchema {
  return z.toJSONSchema(schema, { target: "draft-7", io: "input", unrepresentable: "any" }) as JsonSchema;
}
