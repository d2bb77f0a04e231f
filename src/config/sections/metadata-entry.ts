// The shape of a model's metadata in metadata files and in backends[].model_configs.

import { z } from "zod";
import { isGlob } from "../../lib/glob.ts";
import { nearest } from "../../lib/nearest.ts";
import type { BackendKindName } from "../../names.ts";
import { whole } from "./fields.ts";

/** Like z.strictObject, with one line per unknown key that names the nearest known one. */
export function knownKeysObject<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: (issue) => (issue.code === "unrecognized_keys" ? unknownKeys(issue.keys, Object.keys(shape)) : undefined),
  });
}

function unknownKeys(keys: readonly string[], known: readonly string[]): string {
  const lines = keys.map((key) => {
    const suggestion = nearest(key, known);
    const hint = suggestion ? `did you mean "${suggestion}"?` : `known are ${known.join(", ")}`;
    return `unknown key ${JSON.stringify(key)}; ${hint}`;
  });
  return lines.join("\n");
}

const text = () => z.string().trim().min(1, "must not be empty");
const price = () => z.number().min(0, "must not be negative").max(1e9, "must be at most 1000000000");
const tokens = () => z.int().min(1, "must be at least 1");

export const DAY = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/;

const thinkingSchema = knownKeysObject({
  pattern: z.enum(["none", "standard", "unterminated_start"]).default("none"),
  // Markers keep their white space: a line break may belong to them.
  start_marker: z.string().min(1, "must not be empty").default("<think>"),
  end_marker: z.string().min(1, "must not be empty").default("</think>"),
  assume_reasoning_first: z.boolean().default(false),
});

const modelMetadataSchema = knownKeysObject({
  display_name: text().optional(),
  developer: text().optional(),
  summary: text().optional(),
  capabilities: z.array(text()).optional(),
  knowledge_cutoff: z
    .string({ error: 'expected a year and month in quotes, such as "2025-03"' })
    .regex(/^\d{4}-(0[1-9]|1[0-2])$/, 'expected a year and month, such as "2025-03"')
    .optional(),
  available_until: z
    .string()
    .regex(DAY, 'expected a day, such as "2027-01-31"')
    .optional()
    .describe("The day from which it is no longer served."),
  relative_speed: whole(1, 5).optional().describe("1 is slowest."),
  pricing: knownKeysObject({
    input_tokens: price().optional(),
    output_tokens: price().optional(),
    cache_read_tokens: price().optional().describe("Default: input_tokens."),
    cache_write_tokens: price().optional().describe("Default: input_tokens."),
    reasoning_tokens: price().optional().describe("Default: output_tokens."),
    image: price().optional().describe("Of one picture that the model makes."),
    audio_minute: price().optional().describe("Of one minute of sound that the model hears."),
    batch_discount: z
      .number()
      .min(0, "must not be negative")
      .max(1, "must be at most 1")
      .optional()
      .describe("Share that the vendor's own batches take off all prices. Default: 0.5."),
  })
    .optional()
    .describe("Tokens per 1,000."),
  limits: knownKeysObject({ context_window: tokens().optional(), max_output: tokens().optional() }).optional(),
  thinking: thinkingSchema.optional().describe("How thoughts stand in the text, where the backend does not part them."),
});

export const metadataEntrySchema = knownKeysObject({
  id: text().refine((id) => !isGlob(id), 'must be one model; patterns with "*" belong in aliases'),
  aliases: z.array(text()).default([]),
  metadata: modelMetadataSchema.default({}),
});

export type ModelMetadata = z.output<typeof modelMetadataSchema>;

export type MetadataEntry = z.output<typeof metadataEntrySchema>;

/** What is known beside the configuration. */
export interface FactEntry extends MetadataEntry {
  /** Holds for this type of backend alone; undefined: wherever the model is served. */
  vendor?: BackendKindName;
}
