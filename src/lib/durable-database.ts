// A SQLite file of the gateway's own: other users cannot read it, and what it was given survives a power cut.

import { Database } from "bun:sqlite";
import { createPrivateFile, makePrivate } from "./private-file.ts";

export interface DatabaseSchema {
  /** Written into the file; one that a newer program has written is refused. */
  version: number;
  /** Makes the tables of an empty file. */
  sql: string;
}

/** A write that finds the file locked by another process waits this long; the whole process waits with it. */
const BUSY_TIMEOUT_MS = 100;

/** Pauses before a change that found the file locked is tried again, some seconds in all. */
const PAUSES_MS = [10, 20, 40, 80, 160, 320, 640, 1_280];

/** Work on a file that another process holds: tried again for a while, in which this process does something else. */
export async function whenFree<Result>(work: () => Result): Promise<Result> {
  for (const pauseMs of PAUSES_MS) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) throw error;
    }
    await Bun.sleep(pauseMs);
  }
  return work();
}

function isBusy(error: unknown): boolean {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === "string" && code.startsWith("SQLITE_BUSY");
}

/** Throws what file system and SQLite throw, and for a file of a newer program. */
export function openDurableDatabase(path: string, schema: DatabaseSchema): Database {
  createPrivateFile(path);
  makePrivate(path);
  const sqlite = new Database(path, { readwrite: true, strict: true });
  try {
    prepareDatabase(sqlite, schema);
    return sqlite;
  } catch (error) {
    sqlite.close();
    throw error;
  }
}

export function prepareDatabase(sqlite: Database, { version, sql }: DatabaseSchema): void {
  sqlite.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  sqlite.run("PRAGMA journal_mode = WAL");
  // FULL waits for the disk with every change, of which there are few.
  sqlite.run("PRAGMA synchronous = FULL");
  const versionNow = () => sqlite.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version ?? 0;
  // Takes no lock, for which it would have to wait while another process writes.
  if (versionNow() === version) return;
  sqlite
    .transaction(() => {
      const found = versionNow();
      if (found > version) throw new Error("it was written by a newer version of Signalbox");
      if (found === version) return;
      sqlite.run(sql);
      sqlite.run(`PRAGMA user_version = ${version}`);
    })
    .immediate();
}
