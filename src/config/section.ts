// What a configuration section is: one zod schema per section is the source of validation, defaults and JSON Schema.

import type { z } from "zod";

export interface SectionSpec<Schema extends z.ZodType = z.ZodType> {
  /** Top-level key in the configuration file. */
  name: string;
  /** Shown in listings and in the generated template. */
  description: string;
  /** Every field has a default, so that `{}` (or `[]` for a list) is a valid section. */
  schema: Schema;
  /** Other accepted spellings of keys: path with dots below the section, `*` for any list index or map key. */
  aliases?: Readonly<Record<string, string>>;
  /** Paths of secrets, in the same notation; their values never appear in a message or a view. */
  secretPaths?: readonly string[];
}

export function defineSection<Schema extends z.ZodType>(spec: SectionSpec<Schema>): SectionSpec<Schema> {
  return spec;
}
