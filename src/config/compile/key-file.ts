// The file that api_keys.api_keys_file names: further API keys, under the top-level key `keys`.

import { z } from "zod";
import { parseDocumentText } from "../files/parse-document.ts";
import { readText } from "../files/read-text.ts";
import { type JsonSchema, toJsonSchema } from "../schema/schema-export.ts";
import { apiKeySchema } from "../sections/api-keys.ts";
import type { Environment } from "../values/expand.ts";
import { elsewhere, located, type Problem, type Source } from "../values/problems.ts";
import { isMapping } from "../values/values.ts";
import { expandStrings } from "./compile.ts";
import { describeIssues } from "./describe-issues.ts";

const keyFileSchema = z.strictObject({ keys: z.array(apiKeySchema).nullish() });

export interface KeyFile extends Source {
  file: string;
  keys: z.output<typeof apiKeySchema>[];
  /** The entries as they stand in the file, right or wrong. */
  entries: readonly unknown[];
  problems: Problem[];
  /** Hash of the bytes that were read; undefined if none were. */
  hash: string | undefined;
}

export async function readKeyFile(file: string, env: Environment): Promise<KeyFile> {
  const failed = (message: string, hash?: string): KeyFile => ({
    keys: [],
    entries: [],
    problems: [{ path: [], message, file }],
    hash,
    file,
  });
  const read = await readText(file);
  if ("message" in read) return failed(read.message);

  const { hash } = read;
  const parsed = await parseDocumentText(file, read.text);
  const source = { file, lineOf: parsed.lineOf };
  const problems: Problem[] = parsed.problems.map((problem) => ({ ...problem, file }));
  const document = parsed.value ?? {};
  if (!isMapping(document)) {
    const refused = failed("expected a mapping with the key keys at the top level", hash);
    return { ...refused, problems: [...problems, ...refused.problems] };
  }

  const expanded = expandStrings(document, env);
  problems.push(...expanded.problems.map((problem) => located(problem, source)));
  const entries = Array.isArray(expanded.document.keys) ? expanded.document.keys : [];
  const result = keyFileSchema.safeParse(expanded.document, { reportInput: false });
  if (result.success) return { keys: result.data.keys ?? [], entries, problems, hash, ...source };
  const schema = (): JsonSchema => toJsonSchema(keyFileSchema);
  const issues = describeIssues(result.error.issues, expanded.document, schema, ["api_keys"]);
  problems.push(...elsewhere(issues, expanded.problems).map((problem) => located(problem, source)));
  return { keys: [], entries, problems, hash, ...source };
}
