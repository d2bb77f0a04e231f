// Loads the configuration: finds the file, reads it, compiles it, and says everything that is wrong at once.

import { dirname } from "node:path";
import { type Clock, systemClock } from "../lib/clock.ts";
import { compileDocument } from "./compile.ts";
import { CROSS_CHECKS } from "./cross-checks.ts";
import { discover } from "./discover.ts";
import type { Environment } from "./expand.ts";
import { type KeyFile, readKeyFile } from "./key-file.ts";
import { type ParsedDocument, parseDocumentText } from "./parsed-document.ts";
import { resolvePath } from "./paths.ts";
import type { ConfigProblem, PathProblem, SettingsCheck } from "./problems.ts";
import { readText } from "./read-text.ts";
import type { Settings } from "./sections/registry.ts";
import type { ConfigSnapshot } from "./snapshot.ts";
import { formatPath, isMapping, type Mapping, type PathSegment, valueAt } from "./values.ts";

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
  | { ok: true; snapshot: ConfigSnapshot; found: string | undefined }
  | { ok: false; path: string | undefined; problems: ConfigProblem[] };

export async function loadConfig(options: LoadOptions): Promise<LoadResult> {
  const { env, cwd } = options;
  const home = options.home ?? env.HOME;
  const path =
    options.path === undefined
      ? await discover({ env, cwd, home, ...(options.systemFolder && { systemFolder: options.systemFolder }) })
      : resolvePath(options.path, cwd, home);

  const file = path === undefined ? EMPTY_FILE : await readConfigFile(path);
  if (file.document === undefined) return { ok: false, path, problems: file.problems };
  const compilation = compileDocument(file.document, env);
  const locate = (problem: PathProblem): ConfigProblem => locateIn(file.parsed, path, problem);
  const problems = [...file.problems, ...compilation.problems.map(locate)];

  const baseDir = path === undefined ? cwd : dirname(path);
  const keyFilePath = valueAt(compilation.input, ["api_keys", "api_keys_file"]);
  const keyFile =
    typeof keyFilePath === "string" && keyFilePath !== "" && !problems.some(isAbout("api_keys.api_keys_file"))
      ? await readKeyFile(resolvePath(keyFilePath, baseDir, home), env)
      : undefined;
  if (keyFile) problems.push(...keyFile.problems);

  if (compilation.settings === undefined || problems.length > 0) return { ok: false, path, problems };
  const settings = withKeys(compilation.settings, keyFile);
  const inlineKeys = compilation.settings.api_keys.keys.length;
  for (const check of [...CROSS_CHECKS, ...(options.checks ?? [])]) {
    for (const problem of check(settings)) {
      problems.push(locateInKeyFile(keyFile, inlineKeys, problem) ?? locate(compilation.attribute(problem)));
    }
  }
  if (problems.length > 0) return { ok: false, path, problems };

  const { document } = compilation;
  const appliedAtMs = (options.clock ?? systemClock).wallTime();
  return { ok: true, snapshot: { version: 1, document, settings, appliedAtMs, path, baseDir }, found: path };
}

interface ConfigFile {
  parsed: ParsedDocument | undefined;
  /** Undefined when the file could not be understood. */
  document: Mapping | undefined;
  problems: ConfigProblem[];
}

const EMPTY_FILE: ConfigFile = { parsed: undefined, document: {}, problems: [] };

async function readConfigFile(path: string): Promise<ConfigFile> {
  const failed = (message: string): ConfigFile => ({
    parsed: undefined,
    document: undefined,
    problems: [{ path: "", message, file: path }],
  });
  const read = await readText(path);
  if ("message" in read) return failed(read.message);
  const parsed = await parseDocumentText(path, read.text);
  const problems = parsed.problems.map((problem) => ({ path: "", ...problem, file: path }));
  if (parsed.value === undefined) return { parsed, document: undefined, problems };
  const document = parsed.value ?? {}; // an empty file is an empty document
  if (!isMapping(document)) return failed("expected a mapping of sections at the top level");
  return { parsed, document, problems };
}

function locateIn(parsed: ParsedDocument | undefined, file: string | undefined, problem: PathProblem): ConfigProblem {
  const located: ConfigProblem = { path: formatPath(problem.path), message: problem.message };
  if (problem.variable !== undefined) located.variable = problem.variable;
  if (problem.overridden || file === undefined) return located;
  const line = parsed?.lineOf(problem.path);
  return { ...located, file, ...(line !== undefined && { line }) };
}

function isAbout(path: string): (problem: ConfigProblem) => boolean {
  return (problem) => problem.path === path;
}

function withKeys(settings: Settings, keyFile: KeyFile | undefined): Settings {
  if (keyFile === undefined) return settings;
  return { ...settings, api_keys: { ...settings.api_keys, keys: [...settings.api_keys.keys, ...keyFile.keys] } };
}

/** A problem of a key that came from the key file belongs to that file. */
function locateInKeyFile(
  keyFile: KeyFile | undefined,
  inlineKeys: number,
  problem: { path: PathSegment[]; message: string },
): ConfigProblem | undefined {
  const [section, list, index, ...rest] = problem.path;
  if (keyFile === undefined || section !== "api_keys" || list !== "keys") return undefined;
  if (typeof index !== "number" || index < inlineKeys) return undefined;
  return keyFile.locate({ path: ["keys", index - inlineKeys, ...rest], message: problem.message });
}
