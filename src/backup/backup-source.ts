// What a backup takes, by what the configuration says: the file, and the version that was saved last. Both are read as they
// are written, so that a backup needs neither a valid configuration nor the variables that the gateway is started with.

import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { compileDocument } from "../config/compile/compile.ts";
import { readConfigFile } from "../config/compile/load.ts";
import { discover } from "../config/files/discover.ts";
import { withDefaults } from "../config/schema/defaults.ts";
import { filePathUse } from "../config/schema/section-patterns.ts";
import { PROMPT_ENDINGS } from "../config/sections/global-prompts.ts";
import { readSaved } from "../config/store/read-saved.ts";
import { type Environment, variableNames } from "../config/values/expand.ts";
import { resolveDataPath, resolvePath } from "../config/values/paths.ts";
import { describeProblem } from "../config/values/problems.ts";
import { type Mapping, textsOf, valueAt } from "../config/values/values.ts";
import { dataFiles } from "./data-files.ts";
import { BackupProblem, reasonOf } from "./problem.ts";
import { unfinishedRestore } from "./unfinished-restore.ts";
import type { BackupSource } from "./write-backup.ts";

interface ConfigPlace {
  /** Value of --config; without it the file is looked for. */
  path: string | undefined;
  env: Environment;
  cwd: string;
}

/** Throws BackupProblem. */
export async function findSource(place: ConfigPlace, metadataFile: string | undefined) {
  const { env, cwd } = place;
  const home = env.HOME;
  const found = await readPlace(place);
  const { configFile, baseDir, dataDir } = found;
  if (!existsSync(dataDir))
    throw new BackupProblem(`there is no data folder at ${dataDir} (server.data_dir); nothing to back up`);
  const unfinished = unfinishedRestore(dataDir);
  if (unfinished !== undefined) throw new BackupProblem(unfinished);
  const written = [found.document, ...savedDocument(dataDir)];
  const documents = written.map((document) => withDefaults(compileDocument(document, env).input));
  const named = new Set(metadataFile === undefined ? [] : [resolvePath(metadataFile, cwd, home)]);
  const otherData = new Set<string>();
  for (const document of documents) {
    for (const { text, path } of textsOf(document)) {
      const use = filePathUse(path);
      if (use === undefined || text === "") continue;
      if (use.use === "written" || use.use === "data-folder") {
        otherData.add(resolveDataPath(text, { dataDir, baseDir, home }));
      } else if (use.use === "file" && use.isContent?.(text) !== true) named.add(resolvePath(text, baseDir, home));
    }
    const prompts = resolvePath(String(valueAt(document, ["global_prompts", "prompts_dir"])), baseDir, home);
    for (const prompt of await promptFiles(prompts)) named.add(prompt);
  }
  const source: BackupSource = {
    dataDir,
    baseDir,
    configFile,
    namedFiles: [...named].filter((path) => existsSync(path)),
    otherData: [...otherData],
    variables: [...new Set(textsOf(written).flatMap(({ text }) => variableNames(text)))].sort(),
  };
  return { source, statisticsFile: statisticsFile(documents.at(-1) as Mapping, { dataDir, baseDir, home }) };
}

/** The configuration file and the data folder that it names. Throws BackupProblem. */
export async function readPlace({ path, env, cwd }: ConfigPlace) {
  const home = env.HOME;
  const configFile = path === undefined ? await discover({ env, cwd, home }) : resolvePath(path, cwd, home);
  const baseDir = configFile === undefined ? cwd : dirname(configFile);
  const document = await readDocument(configFile);
  return { configFile, baseDir, document, dataDir: dataFolderOf(document, baseDir, env) };
}

/** The same, where the configuration file of a backup is going to be. Throws BackupProblem. */
export async function placeOfBackup(backedUpFile: string, configFile: string, env: Environment) {
  const baseDir = dirname(configFile);
  return { configFile, baseDir, dataDir: dataFolderOf(await readDocument(backedUpFile), baseDir, env) };
}

async function readDocument(configFile: string | undefined): Promise<Mapping> {
  if (configFile === undefined) return {};
  const { document, problems } = await readConfigFile(configFile);
  if (document !== undefined) return document;
  throw new BackupProblem(`${configFile}: ${problems.map(describeProblem).join("; ")}`);
}

/** Throws BackupProblem. */
function dataFolderOf(document: Mapping, baseDir: string, env: Environment): string {
  const { input, problems } = compileDocument(document, env);
  const path = ["server", "data_dir"];
  const problem = problems.find((found) => found.path.join(".") === path.join("."));
  if (problem !== undefined) throw new BackupProblem(`the data folder is not known: ${describeProblem(problem)}`);
  return resolvePath(String(valueAt(withDefaults(input), path)), baseDir, env.HOME);
}

/** Its secrets stay where they are: only its paths are read. */
function savedDocument(dataDir: string): Mapping[] {
  try {
    const saved = readSaved(dataDir);
    return saved === undefined ? [] : [saved.newest.document];
  } catch (error) {
    throw new BackupProblem(`the configuration in ${dataDir} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
}

/** All that the folder has: those that no setting names now are edited through the admin API, too. */
async function promptFiles(folder: string): Promise<string[]> {
  const found: string[] = [];
  if (!existsSync(folder)) return found;
  for await (const path of dataFiles(folder)) {
    const isHidden = path.split("/").some((name) => name.startsWith("."));
    if (!isHidden && PROMPT_ENDINGS.some((ending) => path.toLowerCase().endsWith(ending)))
      found.push(join(folder, path));
  }
  return found;
}

/** Undefined where none is written. */
function statisticsFile(document: Mapping, place: Parameters<typeof resolveDataPath>[1]): string | undefined {
  const { enabled, path } = valueAt(document, ["admin", "stats", "persistence"]) as Mapping;
  return enabled === false || typeof path !== "string" ? undefined : resolveDataPath(path, place);
}
