// What of a folder of data belongs in a backup: the one place that knows. Databases are recognised by their content, so that
// a new one needs no entry anywhere.

import { open, readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { REQUEST_SUFFIX } from "../stats/snapshot-request.ts";

const DATABASE_HEADER = "SQLite format 3\0";
/** Files of SQLite beside a database; the copy holds their content. */
const SIDECARS = ["-wal", "-shm", "-journal"];
/** Locks, and files that are being written. */
const PASSING_FILES = [/\.lock$/, /^\..*\.tmp$/, new RegExp(`\\${REQUEST_SUFFIX}$`)];
/** Uploads on their way, and what running agents tell of themselves. */
const PASSING_FOLDERS = [/(^|\/)incoming$/, /^acp\/running$/];
/** File systems and mounts make these. */
export const NOT_OURS: readonly string[] = ["lost+found"];

/**
 * Paths below the folder, with slashes. The files of a folder before those of its folders: the list of uploaded files is copied before their contents, which
 * never change. Links are followed, each folder once.
 */
export async function* dataFiles(root: string): AsyncGenerator<string> {
  const seen = new Set<string>();
  async function* walk(folder: string, below: string): AsyncGenerator<string> {
    const real = await realpath(folder);
    if (seen.has(real)) return;
    seen.add(real);
    const names = (await readdir(folder)).filter((name) => !NOT_OURS.includes(name)).sort();
    const folders: string[] = [];
    for (const name of names) {
      const path = below + name;
      const found = await stat(join(folder, name)).catch(() => undefined);
      if (found?.isDirectory() && !PASSING_FOLDERS.some((pattern) => pattern.test(path))) folders.push(name);
      if (!found?.isFile() || PASSING_FILES.some((pattern) => pattern.test(name))) continue;
      if (SIDECARS.some((suffix) => name.endsWith(suffix) && names.includes(name.slice(0, -suffix.length)))) continue;
      yield path;
    }
    for (const name of folders) yield* walk(join(folder, name), `${below}${name}/`);
  }
  yield* walk(root, "");
}

export async function isDatabase(path: string): Promise<boolean> {
  const file = await open(path, "r").catch(() => undefined);
  if (file === undefined) return false; // gone by now, or unreadable: copying it tells
  try {
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(DATABASE_HEADER.length), position: 0 });
    return buffer.toString("latin1", 0, bytesRead) === DATABASE_HEADER;
  } finally {
    await file.close();
  }
}
