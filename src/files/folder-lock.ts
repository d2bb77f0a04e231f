// Whether other processes use the same folder. The kernel gives such a lock back when its process ends, however it ends.

import { Database } from "bun:sqlite";
import { createPrivateFile } from "../lib/private-file.ts";

const BUSY_TIMEOUT_MS = 1_000;

interface FolderLock {
  /** No other process had the folder open at this moment. */
  wasAlone: boolean;
  release(): void;
}

/** `whileAlone` runs before another process can come in, and only when there is none. */
export function lockFolder(path: string, whileAlone: () => void): FolderLock {
  createPrivateFile(path);
  const sqlite = new Database(path, { readwrite: true, strict: true });
  try {
    sqlite.run("PRAGMA busy_timeout = 0");
    const wasAlone = tryExclusively(sqlite, whileAlone);
    // A reader's lock, which does not keep other readers out: a process is alone for a moment only.
    sqlite.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    sqlite.run("BEGIN");
    sqlite.query("SELECT count(*) FROM sqlite_schema").get();
    return { wasAlone, release: () => sqlite.close() };
  } catch (error) {
    sqlite.close();
    throw error;
  }
}

function tryExclusively(sqlite: Database, task: () => void): boolean {
  try {
    sqlite.run("BEGIN EXCLUSIVE");
  } catch (error) {
    if (isBusy(error)) return false;
    throw error;
  }
  try {
    task();
  } finally {
    sqlite.run("COMMIT");
  }
  return true;
}

function isBusy(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return typeof code === "string" && /^SQLITE_(BUSY|LOCKED)/.test(code);
}
