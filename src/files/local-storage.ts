// Contents of files on the local disk: <folder>/<two characters of the id>/<id>.

import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { syncFolder } from "../lib/sync-folder.ts";
import type { Catalogue } from "./catalogue.ts";
import type { ContentStorage, Crash } from "./content-storage.ts";

/** How many files are looked at side by side after a crash; requests have their turn between such batches. */
const BATCH = 64;

export function createLocalStorage(folder: string, catalogue: Catalogue): ContentStorage {
  const folderOf = (id: string) => join(folder, shelfOf(id));
  const pathOf = (id: string) => join(folderOf(id), id);
  return {
    notesLeftovers: false,
    async keep({ id, path }) {
      const shelf = folderOf(id);
      await mkdir(shelf, { recursive: true, mode: 0o700 });
      await rename(path, pathOf(id));
      // Without this a power cut could leave the row and take the name of its content.
      await syncFolder(shelf);
      await syncFolder(folder);
    },
    remove: (id) => rm(pathOf(id), { force: true }),
    async slice(id, bytes, start, end) {
      const path = pathOf(id);
      return (await sizeOf(path)) === bytes ? Bun.file(path).slice(start, end) : undefined;
    },
    async recover(crash) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const removedRows = await removeRows(catalogue, pathOf, crash.isClosed);
      const removedContents = await removeContents(catalogue, folder, crash);
      return { removedRows, removedContents };
    },
  };
}

/** Behind "file-"; the folders stay small with a million of files. */
function shelfOf(id: string): string {
  return id.slice(5, 7);
}

/** Rows whose content is missing or is not what was written. */
async function removeRows(catalogue: Catalogue, pathOf: (id: string) => string, isClosed: () => boolean) {
  let removed = 0;
  for (let last = ""; !isClosed(); ) {
    const rows = catalogue.contentsAfter(last, BATCH);
    if (rows.length === 0) break;
    const sizes = await Promise.all(rows.map(({ id }) => sizeOf(pathOf(id))));
    // A file that was deleted in the meantime is no longer known, and has no content for that reason.
    const broken = rows.filter(({ id, bytes }, index) => sizes[index] !== bytes && catalogue.isKnown(id));
    if (broken.length > 0) catalogue.remove(broken.map(({ id }) => id));
    removed += broken.length;
    last = rows.at(-1)?.id ?? "";
  }
  return removed;
}

async function removeContents(catalogue: Catalogue, folder: string, { openedAtMs, isClosed }: Crash): Promise<number> {
  let removed = 0;
  for (const shelf of await readdir(folder)) {
    if (isClosed()) break;
    const names = await readdir(join(folder, shelf));
    for (const name of names) {
      if (catalogue.isKnown(name)) continue;
      const path = join(folder, shelf, name);
      const found = await statIfThere(path);
      if (found === undefined || found.mtimeMs >= openedAtMs) continue;
      await rm(path, { force: true, recursive: true });
      removed++;
    }
  }
  return removed;
}

/** Undefined: there is no such file. Any other trouble rejects: it does not mean that the content is gone. */
async function sizeOf(path: string): Promise<number | undefined> {
  return (await statIfThere(path))?.size;
}

async function statIfThere(path: string) {
  try {
    return await stat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
