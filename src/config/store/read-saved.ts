// What a gateway has kept of its configuration, as it reads it at a start, and as another process does: nothing is written.

import { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { join } from "node:path";
import { DATABASE_NAME } from "../values/paths.ts";
import { randomKeySalt, savedKeySalt } from "./key-salt.ts";
import { readStanding, type Standing } from "./standing.ts";
import { newestVersion, type VersionRecord } from "./versions.ts";

export interface Saved {
  newest: VersionRecord;
  standing: Standing;
}

/** Undefined where nothing was kept yet. */
export function savedIn(sqlite: Database, salt: () => string): Saved | undefined {
  const newest = newestVersion(sqlite);
  return newest && { newest, standing: readStanding(sqlite, newest, salt) };
}

/** A gateway that writes in this moment is waited for this long. */
const BUSY_TIMEOUT_MS = 100;

/** Undefined where no gateway has kept anything. Throws what file system and SQLite throw. */
export function readSaved(folder: string): Saved | undefined {
  const path = join(folder, DATABASE_NAME);
  // An empty file is one that a gateway makes in this moment.
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0) return undefined;
  const sqlite = new Database(path, { readonly: true, strict: true });
  try {
    sqlite.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    // All of the same moment.
    return sqlite.transaction(() => {
      const salt = savedKeySalt(sqlite) ?? randomKeySalt();
      return savedIn(sqlite, () => salt);
    })();
  } finally {
    sqlite.close();
  }
}

/** Changes whenever a gateway may have kept something; cheap. */
export function savedMark(folder: string): string {
  const marks = ["", "-wal"].map((suffix) => {
    const found = statSync(join(folder, DATABASE_NAME) + suffix, { throwIfNoEntry: false });
    return found === undefined ? "" : `${found.ino}:${found.size}:${found.mtimeMs}`;
  });
  return marks.join(" ");
}
