// The facts about models in the data folder: what --update-facts has written there, as one JSON file.

import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { MAXIMUM_FILE_BYTES, readText } from "../config/files/read-text.ts";
import { type FactEntry, knownKeysObject, metadataEntrySchema } from "../config/sections/metadata-entry.ts";
import { compact } from "../lib/json.ts";
import { replaceFile } from "../lib/replace-file.ts";
import { type BackendKindName, resolveBackendKind } from "../names.ts";
import { describeIssue } from "./metadata-file.ts";

/** In a folder of its own: the gateway watches that, and much is written in the one above. */
export function factsFile(dataDir: string): string {
  return join(dataDir, "facts", "models.json");
}

const MAX_ENTRIES = 20_000;

const vendor = z
  .string()
  .refine((name) => resolveBackendKind(name) === name, "unknown type of backend")
  .transform((name) => name as BackendKindName);

const fileSchema = knownKeysObject({
  models: z.array(metadataEntrySchema.extend({ vendor: vendor.optional() })).max(MAX_ENTRIES),
});

type FactsRead = { entries: readonly FactEntry[]; hash: string | undefined } | { problems: string[] };

/** A file that is not there has no entries and no hash. */
export async function readFactsFile(path: string): Promise<FactsRead> {
  if (!(await Bun.file(path).exists())) return { entries: [], hash: undefined };
  const read = await readText(path);
  if ("message" in read) return { problems: [`${path} ${read.message}`] };
  let value: unknown;
  try {
    value = JSON.parse(read.text);
  } catch {
    return { problems: [`${path} is not JSON; write it again with --update-facts, or remove it`] };
  }
  const parsed = fileSchema.safeParse(value);
  if (!parsed.success) {
    return { problems: parsed.error.issues.flatMap(describeIssue).map((problem) => `${path}: ${problem}`) };
  }
  return { entries: parsed.data.models.map((entry): FactEntry => compact(entry)), hash: read.hash };
}

/** Rejects with the file system's error; returns why the entries are too many. */
export async function writeFactsFile(path: string, entries: readonly FactEntry[]): Promise<string | undefined> {
  const rows = entries.map((entry) => JSON.stringify(entry)).join(",\n");
  const text = `{"models": [\n${rows}\n]}\n`;
  if (entries.length > MAX_ENTRIES) return `would have ${entries.length} entries, of which ${MAX_ENTRIES} are the most`;
  if (Buffer.byteLength(text) > MAXIMUM_FILE_BYTES) return `would be larger than ${MAXIMUM_FILE_BYTES / 2 ** 20} MiB`;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await replaceFile(path, text, 0o600);
  return undefined;
}
