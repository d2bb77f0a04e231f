// Makes the names in a folder outlive a power cut: new files, and files that were renamed or removed.

import { open, readdir } from "node:fs/promises";
import { join } from "node:path";

export async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, "r");
  await folder.sync();
}

/** Includes all folders below it. */
export async function syncFolders(path: string): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (entry.isDirectory()) await syncFolders(join(path, entry.name));
  }
  await syncFolder(path);
}
