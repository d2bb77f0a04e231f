// Makes a backup of a data folder and of what the configuration names, also while a gateway works in it.

import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { basename, join, relative, sep } from "node:path";
import { replaceFile } from "../lib/replace-file.ts";
import { syncFolders } from "../lib/sync-folder.ts";
import { type Checksum, copyDatabase, copyFile } from "./copy-file.ts";
import { dataFiles, isDatabase } from "./data-files.ts";
import { type BackedUpFile, MANIFEST_NAME, type Manifest, manifestText, PARTS } from "./manifest.ts";
import { BackupProblem, reasonOf } from "./problem.ts";

/** All paths are absolute. */
export interface BackupSource {
  dataDir: string;
  /** Folder of the configuration file, or the working folder. */
  baseDir: string;
  configFile: string | undefined;
  /** Files that the configuration names. */
  namedFiles: readonly string[];
  /** Files and folders of data that the configuration keeps in its own places; those in the data folder count once. */
  otherData: readonly string[];
  variables: readonly string[];
}

interface BackupDone {
  manifest: Manifest;
  /** Databases that are damaged: they are in the backup as they are. */
  damaged: string[];
}

/** Throws BackupProblem, and what the file system and SQLite throw; nothing is left then. */
export async function writeBackup(
  target: string,
  source: BackupSource,
  about: Pick<Manifest, "version" | "created_at" | "statistics_of">,
): Promise<BackupDone> {
  const { dataDir } = source;
  if (isInside(target, dataDir)) throw new BackupProblem(`${target} lies in the data folder; choose another place`);
  await makeEmptyFolder(target);
  try {
    return await write(target, source, about);
  } catch (error) {
    for (const part of Object.values(PARTS)) await rm(join(target, part), { recursive: true, force: true });
    throw error;
  }
}

async function write(
  target: string,
  source: BackupSource,
  about: Pick<Manifest, "version" | "created_at" | "statistics_of">,
) {
  const { dataDir, baseDir, configFile, namedFiles, variables } = source;
  const files: BackedUpFile[] = [];
  const damaged: string[] = [];
  const elsewhere: Manifest["elsewhere"] = [];

  async function add(from: string, path: string): Promise<void> {
    const to = join(target, path);
    let checksum: Checksum | undefined;
    try {
      if (await isDatabase(from)) {
        checksum = await copyDatabase(from, to);
        if (checksum === undefined) damaged.push(from);
      }
      checksum ??= await copyFile(from, to);
    } catch (error) {
      if (await isGone(from)) return; // an uploaded file may be deleted at any time
      throw new BackupProblem(`${from} cannot be copied: ${reasonOf(error)}`, { cause: error });
    }
    files.push({ path, ...checksum });
  }

  async function addAll(folder: string, part: string): Promise<void> {
    for await (const path of dataFiles(folder)) await add(join(folder, path), `${part}/${path}`);
  }

  await addAll(dataDir, PARTS.data);
  const takenElsewhere = (path: string): string => {
    const place = `${PARTS.elsewhere}/${elsewhere.length}/${basename(path)}`;
    elsewhere.push({ path: place, from: path });
    return place;
  };
  for (const path of new Set(source.otherData)) {
    const found = isInside(path, dataDir) ? undefined : await stat(path).catch(() => undefined);
    if (found?.isDirectory()) await addAll(path, takenElsewhere(path));
    else if (found !== undefined) await add(path, takenElsewhere(path));
  }
  for (const path of new Set(configFile === undefined ? namedFiles : [configFile, ...namedFiles])) {
    if (isInside(path, dataDir)) continue;
    await add(path, isInside(path, baseDir) ? wirePath(PARTS.config, baseDir, path) : takenElsewhere(path));
  }

  const [part, folder] = configFile && isInside(configFile, dataDir) ? [PARTS.data, dataDir] : [PARTS.config, baseDir];
  const config_file = configFile === undefined ? null : wirePath(part, folder, configFile);
  const manifest = { ...about, config_file, variables: [...variables], elsewhere, files };
  await replaceFile(join(target, MANIFEST_NAME), manifestText(manifest), 0o600);
  await syncFolders(target);
  return { manifest: { format: 1 as const, ...manifest }, damaged };
}

async function makeEmptyFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  if ((await readdir(path)).length > 0) throw new BackupProblem(`${path} is not empty; name a new folder`);
}

/** Both are absolute and normalised; a folder is inside of itself. */
function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== ".." && !way.startsWith(`..${sep}`);
}

function wirePath(part: string, folder: string, path: string): string {
  return [part, ...relative(folder, path).split(sep)].join("/");
}

async function isGone(path: string): Promise<boolean> {
  return await stat(path).then(
    () => false,
    (error) => (error as NodeJS.ErrnoException).code === "ENOENT",
  );
}
