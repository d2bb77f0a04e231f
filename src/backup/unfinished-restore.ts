// The mark of a data folder whose restore has not ended: nothing starts in it, so that half a restore is never used.

import { existsSync } from "node:fs";
import { join } from "node:path";

const MARK_NAME = "restore.unfinished";

export function restoreMark(dataDir: string): string {
  return join(dataDir, MARK_NAME);
}

/** Why nothing may start in this folder; undefined where everything may. */
export function unfinishedRestore(dataDir: string): string | undefined {
  if (!existsSync(restoreMark(dataDir))) return undefined;
  return `the restore of ${dataDir} did not end; empty the folder and restore again`;
}
