// The model-metadata file: facts about models that no backend reports (docs/configuration.md).

import { z } from "zod";
import { readText } from "../config/files/read-text.ts";
import { knownKeysObject, type MetadataEntry, metadataEntrySchema } from "../config/sections/metadata-entry.ts";

const fileSchema = knownKeysObject({ models: z.array(metadataEntrySchema) });

type MetadataFileResult = { ok: true; entries: MetadataEntry[] } | { ok: false; problems: string[] };

/** With the hash of what was read. Every problem is one line that starts with its place: "models[2].metadata.limits.max_output: must be at least 1". */
export async function loadModelMetadata(path: string) {
  const read = await readText(path);
  if ("message" in read) return { ok: false, problems: [`${path} ${read.message}`] } as const;
  const parsed = await parseModelMetadata(read.text);
  return parsed.ok ? { ...parsed, hash: read.hash } : parsed;
}

export async function parseModelMetadata(content: string): Promise<MetadataFileResult> {
  // Most gateways have no such file.
  const { parseDocument } = await import("yaml");
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
  return checkModelMetadata(value);
}

/** Checks the value of a parsed file. */
export function checkModelMetadata(value: unknown): MetadataFileResult {
  const parsed = fileSchema.safeParse(value);
  if (!parsed.success) return { ok: false, problems: parsed.error.issues.flatMap(describeIssue) };
  const problems = duplicateProblems(parsed.data.models);
  return problems.length > 0 ? { ok: false, problems } : { ok: true, entries: parsed.data.models };
}

/** With its place in front. */
export function describeIssue(issue: z.core.$ZodIssue): string[] {
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
  return firstLine(cause.message);
}

function firstLine(message: string): string {
  return message.split("\n")[0]?.replace(/:$/, "") ?? message;
}
