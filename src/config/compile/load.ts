// Loads the configuration: finds the file, reads it, compiles it, and says everything that is wrong at once.

import { dirname } from "node:path";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { discover } from "../files/discover.ts";
import { parseDocumentText } from "../files/parse-document.ts";
import type { ParsedDocument } from "../files/parsed-document.ts";
import { readText } from "../files/read-text.ts";
import type { Settings } from "../sections/registry.ts";
import type { Environment } from "../values/expand.ts";
import { resolvePath } from "../values/paths.ts";
import type { ConfigProblem, PathProblem, SettingsCheck } from "../values/problems.ts";
import { formatPath, isMapping, type Mapping } from "../values/values.ts";
import { prepareDocument } from "./prepare.ts";
import type { ConfigSnapshot } from "./snapshot.ts";

export interface LoadOptions {
  /** Value of --config; without it the file is looked for. */
  path?: string | undefined;
  env: Environment;
  cwd: string;
  /** Default: HOME of the environment. */
  home?: string | undefined;
  /** Rules of layers above this one; paths start at the section. */
  checks?: readonly SettingsCheck<Settings>[];
  clock?: Clock;
  /** For tests; default /etc/signalbox. */
  systemFolder?: string;
}

export type LoadResult =
  | { ok: true; snapshot: ConfigSnapshot; found: string | undefined; fileHash?: string }
  | LoadFailure;

export interface LoadFailure {
  ok: false;
  path: string | undefined;
  baseDir: string;
  problems: ConfigProblem[];
  /** Where the gateway listens, as far as that can be said. */
  server: Settings["server"] | undefined;
}

export async function loadConfig(options: LoadOptions): Promise<LoadResult> {
  const { env, cwd } = options;
  const home = options.home ?? env.HOME;
  const path =
    options.path === undefined
      ? await discover({ env, cwd, home, ...(options.systemFolder && { systemFolder: options.systemFolder }) })
      : resolvePath(options.path, cwd, home);

  const file = path === undefined ? EMPTY_FILE : await readConfigFile(path);
  const baseDir = path === undefined ? cwd : dirname(path);
  if (file.document === undefined) return { ok: false, path, baseDir, problems: file.problems, server: undefined };
  const prepared = await prepareDocument(file.document, {
    env,
    baseDir,
    home,
    checks: options.checks ?? [],
    locate: (problem) => locateIn(file.parsed, path, problem),
    locateFile: (problem) => problem,
  });
  const problems = [...file.problems, ...prepared.problems, ...prepared.crossProblems];
  const { settings, document, overrides, includedFiles } = prepared;
  if (settings === undefined || problems.length > 0) {
    return { ok: false, path, baseDir, problems, server: prepared.server };
  }
  const appliedAtMs = (options.clock ?? systemClock).wallTime();
  const snapshot = { version: 1, document, settings, appliedAtMs, path, baseDir, overrides, includedFiles };
  return { ok: true, snapshot, found: path, ...(file.hash !== undefined && { fileHash: file.hash }) };
}

export interface ConfigFile {
  parsed: ParsedDocument | undefined;
  /** Undefined when the file could not be understood. */
  document: Mapping | undefined;
  problems: ConfigProblem[];
  /** Of its bytes; undefined where there is no text. */
  hash?: string;
  /** There is not even a comment. */
  isEmpty?: boolean;
}

const EMPTY_FILE: ConfigFile = { parsed: undefined, document: {}, problems: [] };

export async function readConfigFile(path: string): Promise<ConfigFile> {
  const failed = (message: string): ConfigFile => ({
    parsed: undefined,
    document: undefined,
    problems: [{ path: "", message, file: path }],
  });
  const read = await readText(path);
  if ("message" in read) return failed(read.message);
  const { hash } = read;
  const parsed = await parseDocumentText(path, read.text);
  const problems = parsed.problems.map((problem) => ({ path: "", ...problem, file: path }));
  if (parsed.value === undefined) return { parsed, document: undefined, problems, hash };
  const document = parsed.value ?? {}; // an empty file is an empty document
  if (!isMapping(document)) return { ...failed("expected a mapping of sections at the top level"), hash };
  return { parsed, document, problems, hash, isEmpty: read.text.trim() === "" };
}

/** A problem with the line of the file it stands on. */
export function locateIn(
  parsed: ParsedDocument | undefined,
  file: string | undefined,
  problem: PathProblem,
): ConfigProblem {
  const located: ConfigProblem = { path: formatPath(problem.path), message: problem.message };
  if (problem.variable !== undefined) located.variable = problem.variable;
  if (problem.overridden || file === undefined) return located;
  const line = parsed?.lineOf(problem.path);
  return { ...located, file, ...(line !== undefined && { line }) };
}
