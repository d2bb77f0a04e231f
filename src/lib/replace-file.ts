// Writes a file so that readers see the old one or the new one, and a crash leaves one of them.

import { open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The folder is there; `mode` is that of the new file. Rejects with the file system's error, and leaves nothing behind. */
export async function replaceFile(path: string, content: Uint8Array | string, mode: number): Promise<void> {
  const temporary = join(dirname(path), `.${crypto.randomUUID()}.tmp`);
  try {
    const file = await open(temporary, "wx", mode);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {}); // what cannot be written cannot always be removed
    throw error;
  }
}
