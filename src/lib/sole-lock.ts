// A lock that one process at a time has, for as long as it wants. The kernel gives it back when its process ends, however it
// ends.

import { Database } from "bun:sqlite";
import { createPrivateFile } from "./private-file.ts";

export interface SoleLock {
  /** False while another process has it. */
  take(): boolean;
  release(): void;
}

export function openSoleLock(path: string): SoleLock {
  createPrivateFile(path);
  const sqlite = new Database(path, { readwrite: true, strict: true });
  sqlite.run("PRAGMA busy_timeout = 0");
  return {
    take() {
      try {
        sqlite.run("BEGIN EXCLUSIVE");
        return true;
      } catch (error) {
        if (String((error as { code?: unknown }).code).startsWith("SQLITE_BUSY")) return false;
        throw error;
      }
    },
    release: () => sqlite.close(),
  };
}
