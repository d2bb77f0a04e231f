// Loads the configuration: finds the file, reads it, compiles it, and says everything that is wrong at once.

import { dirname } from "node:path";
import { type Clock, systemClock } from "../../lib/clock.ts";
import { discover } from "../files/discover.ts";
import { parseDocumentText } from "../files/parse-document.ts";
import { readText } from "../files/read-text.ts";
import type { Settings } from "../sections/registry.ts";
import type { Environment } from "../values/expand.ts";
import { resolvePath } from "../values/paths.ts";
import { located, type Problem, type SettingsCheck } from "../values/problems.ts";
import { isMapping, type Mapping, type Path } from "../values/values.ts";
import type { AttachmentReader } from "./attachments.ts";
import { type PreparedDocument, prepareDocument } from "./prepare.ts";
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
  /** Readers of the files that the settings name. */
  readers?: readonly AttachmentReader[];
  clock?: Clock;
  /** For tests; default /etc/signalbox. */
  systemFolder?: string;
}

export type LoadResult =
  | { ok: true; snapshot: ConfigSnapshot; prepared: PreparedDocument; found: string | undefined; fileHash?: string }
  | LoadFailure;

interface LoadFailure {
  ok: false;
  path: string | undefined;
  baseDir: string;
  problems: Problem[];
  /** Undefined when the file could not be understood. */
  prepared: PreparedDocument | undefined;
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
  const fileProblems = file.problems.map((problem) => located(problem, { file: path }));
  if (file.document === undefined) return { ok: false, path, baseDir, problems: fileProblems, prepared: undefined };
  const prepared = await prepareDocument(file.document, {
    env,
    baseDir,
    home,
    checks: options.checks ?? [],
    readers: options.readers ?? [],
    source: { file: path, lineOf: file.lineOf },
  });
  const problems = [...fileProblems, ...prepared.problems, ...prepared.crossProblems];
  const { compiled } = prepared;
  if (compiled === undefined || problems.length > 0) return { ok: false, path, baseDir, problems, prepared };
  const appliedAtMs = (options.clock ?? systemClock).wallTime();
  const snapshot = { ...compiled, version: 1, appliedAtMs, path, baseDir };
  return { ok: true, snapshot, prepared, found: path, ...(file.hash !== undefined && { fileHash: file.hash }) };
}

interface ConfigFile {
  /** Undefined when the file could not be understood. */
  document: Mapping | undefined;
  problems: Problem[];
  lineOf?: (path: Path) => number | undefined;
  /** Hash of the bytes; undefined if there is no text. */
  hash?: string;
  /** The file has not even a comment. */
  isEmpty?: boolean;
}

const EMPTY_FILE: ConfigFile = { document: {}, problems: [] };

export async function readConfigFile(path: string): Promise<ConfigFile> {
  const failed = (message: string): ConfigFile => ({ document: undefined, problems: [{ path: [], message }] });
  const read = await readText(path);
  if ("message" in read) return failed(read.message);
  const { hash } = read;
  const { value, problems, lineOf } = await parseDocumentText(path, read.text);
  if (value === undefined) return { document: undefined, problems, hash };
  const document = value ?? {}; // an empty file is an empty document
  if (!isMapping(document)) return { ...failed("expected a mapping of sections at the top level"), hash };
  return { document, problems, lineOf, hash, isEmpty: read.text.trim() === "" };
}
