// --backup and --restore: what is copied where, and the report for the operator.

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { findSource, placeOfBackup, readPlace } from "../backup/backup-source.ts";
import { BackupProblem, reasonOf } from "../backup/problem.ts";
import { openBackup, restoreBackup } from "../backup/restore-backup.ts";
import { writeBackup } from "../backup/write-backup.ts";
import type { Environment } from "../config/values/expand.ts";
import { resolvePath } from "../config/values/paths.ts";
import { parseObject } from "../lib/json.ts";
import { SERVICE_NAME, VERSION } from "../names.ts";
import { requestSnapshot } from "../stats/snapshot-request.ts";
import type { Command } from "./arguments.ts";

type BackupCommand = Extract<Command, { command: "backup" }>;
type RestoreCommand = Extract<Command, { command: "restore" }>;

/** Returns the exit code. */
export async function backUp({ folder, config, modelMetadata }: BackupCommand, env: Environment): Promise<number> {
  return await attempt(async () => {
    const cwd = process.cwd();
    const target = resolve(cwd, folder);
    const { source, statisticsFile } = await findSource({ path: config, env, cwd }, modelMetadata);
    const isFresh = statisticsFile !== undefined && (await requestSnapshot(statisticsFile).catch(() => false));
    const statistics_of = statisticsFile === undefined ? null : await timeOf(statisticsFile);
    const about = { version: VERSION, created_at: new Date().toISOString(), statistics_of };
    const { manifest, damaged } = await writeBackup(target, source, about);
    const bytes = manifest.files.reduce((sum, file) => sum + file.bytes, 0);
    tell(`${target}: ${manifest.files.length} files of ${source.dataDir}, ${bytes} bytes`);
    if (statistics_of !== null) {
      const told = isFresh ? "written for this backup" : "no running gateway wrote newer ones";
      tell(`  the statistics are of ${statistics_of} (${told})`);
    }
    for (const path of damaged) tell(`  ${path} is a damaged database; the backup has it as it is`);
    tellElsewhere(manifest.elsewhere);
    tellVariables(manifest.variables);
  });
}

/** Returns the exit code. */
export async function restore({ folder, config }: RestoreCommand, env: Environment): Promise<number> {
  return await attempt(async () => {
    const cwd = process.cwd();
    const from = resolve(cwd, folder);
    const manifest = await openBackup(from);
    const { config_file } = manifest;
    const configFile = config_file === null ? config : (config ?? basename(config_file));
    const path = configFile === undefined ? undefined : resolvePath(configFile, cwd, env.HOME);
    const target =
      config_file === null || path === undefined || existsSync(path)
        ? await readPlace({ path, env, cwd })
        : await placeOfBackup(join(from, config_file), path, env);
    const { kept } = await restoreBackup(from, manifest, target);
    tell(`${target.dataDir}: the data of ${manifest.created_at}, of Signalbox ${manifest.version}`);
    if (path !== undefined) tell(`  start it with --config ${path}`);
    for (const file of kept) {
      if (!file.isSame) tell(`  ${file.path} was there before and stays; the backup has another one`);
    }
    tellElsewhere(manifest.elsewhere);
    tellVariables(manifest.variables);
  });
}

function tellElsewhere(elsewhere: readonly { path: string; from: string }[]): void {
  for (const { path, from } of elsewhere) tell(`  ${path} is ${from}; a restore leaves it to you to put it back`);
}

function tellVariables(variables: readonly string[]): void {
  if (variables.length > 0)
    tell(`  the configuration needs these variables, which no backup has: ${variables.join(", ")}`);
}

/** When a snapshot was written; null: there is none that can be read. */
async function timeOf(statisticsFile: string): Promise<string | null> {
  const text = await readFile(statisticsFile, "utf8").catch(() => "");
  const savedAtMs = parseObject(text)?.saved_at;
  return typeof savedAtMs === "number" ? new Date(savedAtMs).toISOString() : null;
}

async function attempt(task: () => Promise<void>): Promise<number> {
  try {
    await task();
    return 0;
  } catch (error) {
    const message = error instanceof BackupProblem ? error.message : `the file system refuses it: ${reasonOf(error)}`;
    process.stderr.write(`${SERVICE_NAME}: ${message}\n`);
    return 1;
  }
}

function tell(line: string): void {
  process.stdout.write(`${line}\n`);
}
