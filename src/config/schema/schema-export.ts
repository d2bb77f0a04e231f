// JSON Schema (draft-07) of the configuration document, made from the same source as its validation.

import { z } from "zod";
import { lazily } from "../../lib/lazily.ts";
import { documentSchema, SECTIONS, type Settings } from "../sections/registry.ts";

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

/**
 * Made once; it must not be changed. Each section is made when it is first read: a start that asks for one variable of the
 * environment needs one of them, and all together take longer than to validate the whole document.
 */
export const documentJsonSchema = lazily((): JsonSchema => {
  const properties: Record<string, JsonSchema> = {};
  for (const { name, description } of SECTIONS) {
    const section = lazily(() => {
      const { $schema: _, ...schema } = toJsonSchema(documentSchema.shape[name as keyof Settings]);
      return { ...schema, description };
    });
    Object.defineProperty(properties, name, { enumerable: true, get: section });
  }
  return { ...toJsonSchema(z.strictObject({})), properties, title: "Signalbox configuration" };
});

/** The schema of one section; undefined for an unknown one. */
export function sectionJsonSchema(name: string): JsonSchema | undefined {
  const section = SECTIONS.find((candidate) => candidate.name === name);
  if (section === undefined) return undefined;
  return { ...toJsonSchema(section.schema), title: section.name, description: section.description };
}

/** Describes the input that an operator may write (`io: input`); parts that JSON Schema cannot express accept anything. */
export function toJsonSchema(schema: z.ZodType): JsonSchema {
  return z.toJSONSchema(schema, { target: "draft-7", io: "input", unrepresentable: "any" }) as JsonSchema;
}
