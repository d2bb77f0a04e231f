// The file that api_keys.api_keys_file names: further API keys, under the top-level key `keys`.

import { z } from "zod";
import { parseDocumentText } from "../files/parse-document.ts";
import { readText } from "../files/read-text.ts";
import { type JsonSchema, toJsonSchema } from "../schema/schema-export.ts";
import { apiKeySchema } from "../sections/api-keys.ts";
import { type Environment, expandVariables, hasReference } from "../values/expand.ts";
import { located, type Problem, type Source } from "../values/problems.ts";
import { formatPath, isMapping, mapStrings } from "../values/values.ts";
import { describeIssues } from "./describe-issues.ts";

const keyFileSchema = z.strictObject({ keys: z.array(apiKeySchema).nullish() });

export interface KeyFile extends Source {
  file: string;
  keys: z.output<typeof apiKeySchema>[];
  problems: Problem[];
  /** Of what was read; undefined where nothing was. */
  hash: string | undefined;
}

export async function readKeyFile(file: string, env: Environment): Promise<KeyFile> {
  const failed = (message: string, hash?: string): KeyFile => ({
    keys: [],
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

  const unexpandable: string[] = [];
  const expanded = mapStrings(document, (text, at) => {
    if (!hasReference(text)) return text;
    const expansion = expandVariables(text, env);
    if (expansion.problems.length > 0) unexpandable.push(formatPath(at));
    problems.push(...expansion.problems.map((problem) => located({ path: at, ...problem }, source)));
    return expansion.text;
  });
  const result = keyFileSchema.safeParse(expanded, { reportInput: false });
  if (result.success) return { keys: result.data.keys ?? [], problems, hash, ...source };
  const schema = (): JsonSchema => toJsonSchema(keyFileSchema);
  for (const problem of describeIssues(result.error.issues, expanded, schema, ["api_keys"])) {
    if (!unexpandable.includes(formatPath(problem.path))) problems.push(located(problem, source));
  }
  return { keys: [], problems, hash, ...source };
}
