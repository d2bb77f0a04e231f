// The file that api_keys.api_keys_file names: further API keys, under the top-level key `keys`.

import { z } from "zod";
import { parseDocumentText } from "../files/parse-document.ts";
import { readText } from "../files/read-text.ts";
import { type JsonSchema, toJsonSchema } from "../schema/schema-export.ts";
import { apiKeySchema } from "../sections/api-keys.ts";
import { type Environment, expandVariables, hasReference } from "../values/expand.ts";
import type { ConfigProblem, PathProblem } from "../values/problems.ts";
import { formatPath, isMapping, mapStrings, type Path } from "../values/values.ts";
import { describeIssues } from "./describe-issues.ts";

const keyFileSchema = z.strictObject({ keys: z.array(apiKeySchema).nullish() });

export interface KeyFile {
  keys: z.output<typeof apiKeySchema>[];
  problems: ConfigProblem[];
  /** Of what was read; undefined where nothing was. */
  hash: string | undefined;
  /** A problem at a path of this file, with its line. */
  locate(problem: PathProblem): ConfigProblem;
}

export async function readKeyFile(path: string, env: Environment): Promise<KeyFile> {
  const read = await readText(path);
  if ("message" in read) return failed(path, read.message);

  const { hash } = read;
  const parsed = await parseDocumentText(path, read.text);
  const lineOf = (at: Path): number | undefined => parsed.lineOf(at);
  const locate = (problem: PathProblem): ConfigProblem => {
    const line = lineOf(problem.path);
    return {
      path: formatPath(problem.path),
      message: problem.message,
      ...(line !== undefined && { line }),
      file: path,
      ...(problem.variable !== undefined && { variable: problem.variable }),
    };
  };
  const problems: ConfigProblem[] = parsed.problems.map((problem) => ({ path: "", file: path, ...problem }));
  const document = parsed.value ?? {};
  if (!isMapping(document)) {
    problems.push({ path: "", message: "expected a mapping with the key keys at the top level", file: path });
    return { keys: [], problems, hash, locate };
  }

  const unexpandable: string[] = [];
  const expanded = mapStrings(document, (text, at) => {
    if (!hasReference(text)) return text;
    const expansion = expandVariables(text, env);
    if (expansion.problems.length > 0) unexpandable.push(formatPath(at));
    problems.push(...expansion.problems.map((problem) => locate({ path: at, ...problem })));
    return expansion.text;
  });
  const result = keyFileSchema.safeParse(expanded, { reportInput: false });
  if (result.success) return { keys: result.data.keys ?? [], problems, hash, locate };
  const schema = (): JsonSchema => toJsonSchema(keyFileSchema);
  for (const problem of describeIssues(result.error.issues, expanded, schema, ["api_keys"])) {
    if (!unexpandable.includes(formatPath(problem.path))) problems.push(locate(problem));
  }
  return { keys: [], problems, hash, locate };
}

function failed(path: string, message: string): KeyFile {
  return {
    keys: [],
    problems: [{ path: "", message, file: path }],
    hash: undefined,
    locate: (problem) => ({ path: formatPath(problem.path), message: problem.message, file: path }),
  };
}
