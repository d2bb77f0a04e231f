// The model-metadata file: facts about models that no backend tells (specification, "Metadata file entry").

import { parseDocument } from "yaml";
import { z } from "zod";
import { isGlob } from "../lib/glob.ts";
import { nearest } from "../lib/nearest.ts";

/** Like z.strictObject, with one line per unknown key that names the nearest known one. */
function knownKeysObject<Shape extends z.ZodRawShape>(shape: Shape) {
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
const price = () => z.number().min(0, "must not be negative");
const tokens = () => z.int().min(1, "must be at least 1");

const thinkingSchema = knownKeysObject({
  pattern: z.enum(["none", "standard", "unterminated_start"]).default("none"),
  // Markers keep their white space: a line break may belong to them.
  start_marker: z.string().min(1, "must not be empty").default("<think>"),
  end_marker: z.string().min(1, "must not be empty").default("</think>"),
  assume_reasoning_first: z.boolean().default(false),
});

export const modelMetadataSchema = knownKeysObject({
  display_name: text().optional(),
  developer: text().optional(),
  summary: text().optional(),
  capabilities: z.array(text()).optional(),
  knowledge_cutoff: z
    .string({ error: 'expected a year and month in quotes, such as "2025-03"' })
    .regex(/^\d{4}-(0[1-9]|1[0-2])$/, 'expected a year and month, such as "2025-03"')
    .optional(),
  relative_speed: z.int().min(1).max(5).optional().describe("1 is slowest."),
  pricing: knownKeysObject({ input_tokens: price().optional(), output_tokens: price().optional() })
    .optional()
    .describe("Per 1,000 tokens."),
  limits: knownKeysObject({ context_window: tokens().optional(), max_output: tokens().optional() }).optional(),
  thinking: thinkingSchema.optional(),
});

export const metadataEntrySchema = knownKeysObject({
  id: text().refine((id) => !isGlob(id), 'must be one model; patterns with "*" belong in aliases'),
  aliases: z.array(text()).default([]),
  metadata: modelMetadataSchema.default({}),
});

const fileSchema = knownKeysObject({ models: z.array(metadataEntrySchema) });

export type ModelMetadata = z.output<typeof modelMetadataSchema>;

export type MetadataEntry = z.output<typeof metadataEntrySchema>;

export type MetadataFileResult = { ok: true; entries: MetadataEntry[] } | { ok: false; problems: string[] };

/** Every problem is one line that starts with its place: "models[2].metadata.limits.max_output: must be at least 1". */
export async function loadModelMetadata(path: string): Promise<MetadataFileResult> {
  let content: string;
  try {
    content = await Bun.file(path).text();
  } catch (cause) {
    return { ok: false, problems: [`cannot read ${path}: ${reason(cause)}`] };
  }
  return parseModelMetadata(content);
}

export function parseModelMetadata(content: string): MetadataFileResult {
  const document = parseDocument(content);
  if (document.errors.length > 0) {
    return { ok: false, problems: document.errors.map((error) => firstLine(error.message)) };
  }
  let value: unknown;
  try {
    value = document.toJS();
  } catch (cause) {
    // References ("*name") that are unknown, or that multiply into a huge document, are found only here.
    return { ok: false, problems: [reason(cause)] };
  }
  const parsed = fileSchema.safeParse(value);
  if (!parsed.success) return { ok: false, problems: parsed.error.issues.flatMap(describeIssue) };
  const problems = duplicateProblems(parsed.data.models);
  return problems.length > 0 ? { ok: false, problems } : { ok: true, entries: parsed.data.models };
}

function describeIssue(issue: z.core.$ZodIssue): string[] {
  const place = z.core.toDotPath(issue.path);
  return issue.message.split("\n").map((line) => (place === "" ? line : `${place}: ${line}`));
}

/** A name that two entries claim has no right answer. An alias that is another entry's id is legal: the id wins. */
function duplicateProblems(entries: readonly MetadataEntry[]): string[] {
  const problems: string[] = [];
  const ids = new Map<string, number>();
  const aliases = new Map<string, number>();
  entries.forEach((entry, index) => {
    const sameId = ids.get(entry.id);
    if (sameId === undefined) ids.set(entry.id, index);
    else problems.push(`models[${index}].id: "${entry.id}" is already the id of models[${sameId}]`);

    for (const alias of new Set(entry.aliases)) {
      const sameAlias = aliases.get(alias);
      if (sameAlias === undefined) aliases.set(alias, index);
      else problems.push(`models[${index}].aliases: "${alias}" is already an alias of models[${sameAlias}]`);
    }
  });
  return problems;
}

function reason(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  return "code" in cause && cause.code === "ENOENT" ? "no such file" : firstLine(cause.message);
}

function firstLine(message: string): string {
  return message.split("\n")[0]?.replace(/:$/, "") ?? message;
}
