// Puts a backup into an empty data folder: everything is checked before anything is written, and a restore that is cut off
// leaves a folder that nothing starts in.

import { existsSync } from "node:fs";
import { lstat, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { syncFolder, syncFolders } from "../lib/sync-folder.ts";
import { type Checksum, checksumOf, copyFile } from "./copy-file.ts";
import { NOT_OURS } from "./data-files.ts";
import { type BackedUpFile, type Manifest, PARTS, readManifest } from "./manifest.ts";
import { BackupProblem, reasonOf } from "./problem.ts";
import { restoreMark } from "./unfinished-restore.ts";

/** A backup whose files are all there, as the manifest says. Throws BackupProblem. */
export async function openBackup(folder: string): Promise<Manifest> {
  const manifest = await readManifest(folder);
  for (const file of manifest.files) {
    const path = join(folder, file.path);
    const isFile = await lstat(path).then(
      (found) => found.isFile(),
      () => false,
    );
    if (!isFile) throw new BackupProblem(`${path} is missing; the backup is damaged, nothing was restored`);
    if (!isSame(await checksumOf(path), file)) {
      throw new BackupProblem(`${path} is not what was backed up; the backup is damaged, nothing was restored`);
    }
  }
  return manifest;
}

interface RestoreTarget {
  dataDir: string;
  /** Where the configuration file and what it names beside itself go. */
  baseDir: string;
  /** Name of the configuration file in the backup; undefined without one. */
  configFile: string | undefined;
}

/** Files beside the configuration that were there before, and stay. */
interface RestoreDone {
  kept: { path: string; isSame: boolean }[];
}

/** Throws BackupProblem; what was written is removed again then. */
export async function restoreBackup(folder: string, manifest: Manifest, target: RestoreTarget): Promise<RestoreDone> {
  const { dataDir } = target;
  const isNew = !existsSync(dataDir);
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const before = (await readdir(dataDir)).filter((name) => !NOT_OURS.includes(name));
  if (before.length > 0)
    throw new BackupProblem(`${dataDir} is not empty; a backup is restored into an empty folder only`);
  const mark = restoreMark(dataDir);
  await (await open(mark, "wx", 0o600)).close();
  await syncFolder(dataDir);
  try {
    for (const file of filesOf(manifest, PARTS.data)) await put(folder, file, join(dataDir, file.below));
    const kept = await putBeside(folder, manifest, target);
    await syncFolders(dataDir);
    await rm(mark);
    await syncFolder(dataDir);
    return { kept };
  } catch (error) {
    await empty(dataDir, mark);
    if (isNew) await rm(dataDir, { recursive: true, force: true });
    if (error instanceof BackupProblem) throw error;
    throw new BackupProblem(`the backup could not be restored: ${reasonOf(error)}`, { cause: error });
  }
}

type RestoredFile = BackedUpFile & { below: string };

function filesOf({ files }: Manifest, part: string): RestoredFile[] {
  return files
    .filter(({ path }) => path.startsWith(`${part}/`))
    .map((file) => ({ ...file, below: file.path.slice(part.length + 1) }));
}

async function put(folder: string, file: BackedUpFile, target: string): Promise<void> {
  if (isSame(await copyFile(join(folder, file.path), target), file)) return;
  throw new BackupProblem(`${join(folder, file.path)} has changed during the restore`);
}

/** Nothing that is there is overwritten. */
async function putBeside(folder: string, manifest: Manifest, { baseDir, configFile }: RestoreTarget) {
  const kept: RestoreDone["kept"] = [];
  for (const file of filesOf(manifest, PARTS.config)) {
    const path =
      file.path === manifest.config_file && configFile !== undefined ? configFile : join(baseDir, file.below);
    if (existsSync(path)) {
      kept.push({ path, isSame: isSame(await checksumOf(path), file) });
      continue;
    }
    const temporary = join(dirname(path), `.${crypto.randomUUID()}.tmp`);
    try {
      await put(folder, file, temporary);
      await rename(temporary, path);
    } finally {
      await rm(temporary, { force: true });
    }
  }
  return kept;
}

/** Removes the mark last. */
async function empty(dataDir: string, mark: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    const path = join(dataDir, name);
    if (path !== mark && !NOT_OURS.includes(name)) await rm(path, { recursive: true, force: true });
  }
  await rm(mark, { force: true });
}

function isSame(one: Checksum, other: Checksum): boolean {
  return one.bytes === other.bytes && one.sha256 === other.sha256;
}
