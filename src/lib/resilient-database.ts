// A SQLite file of observations, which must never stop the process: every use of it works or throws a StorageError at once,
// without waiting for a lock. A file that is locked, full, gone or broken is dealt with at the next use.

import { Database, type SQLQueryBindings, type Statement } from "bun:sqlite";
import { renameSync, rmSync, statSync } from "node:fs";
import type { DatabaseSchema } from "./durable-database.ts";
import { createPrivateFile, makePrivate } from "./private-file.ts";

interface ResilientDatabaseParts<Connection> {
  /** Absolute. */
  path: string;
  /** The content of the file, as messages name it: "metrics history". */
  name: string;
  schema: DatabaseSchema;
  /** The file does not grow beyond this: SQLite refuses the write, and `isAtLimit` tells this from a full disk. */
  maxBytes: number;
  log: { warn(fields: object, message: string): void };
  /** Makes the state of one opening of the file, such as ids that were read from it. */
  opened(database: Database): Connection;
}

/** Storage did not do what it was asked to; the message has no content of the file. */
export class StorageError extends Error {
  override name = "StorageError";
  readonly code: string;

  constructor(what: string, cause: unknown) {
    const code = codeOf(cause);
    super(`The ${what} cannot be used at the moment (${code}).`, { cause });
    this.code = code;
  }
}

const NEAR_LIMIT_PAGES = 256;
/** Pages that one step of shrinking gives back before others get their turn. */
const STEP_PAGES = 256;

export class ResilientDatabase<Connection> {
  readonly #parts: ResilientDatabaseParts<Connection>;
  #maxBytes: number;
  /** `inode` tells the file that was opened from another one under its name. */
  #open: { database: Database; inode: number; connection: Connection } | undefined;

  constructor(parts: ResilientDatabaseParts<Connection>) {
    this.#parts = parts;
    this.#maxBytes = parts.maxBytes;
  }

  run<Result>(work: (database: Database, connection: Connection) => Result): Result {
    try {
      const { database, connection } = this.#connect();
      return work(database, connection);
    } catch (error) {
      const code = codeOf(error);
      // Locked or full: the connection is good, and so may the next attempt be.
      if (!/^SQLITE_(BUSY|LOCKED|FULL)/.test(code)) this.close();
      if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) this.#setAside();
      throw new StorageError(this.#parts.name, error);
    }
  }

  /** From the next use on; a file that is larger does not become smaller by it. */
  set maxBytes(maxBytes: number) {
    this.#maxBytes = maxBytes;
    if (this.#open !== undefined) limit(this.#open.database, maxBytes);
  }

  /** True if the file, not the disk, has no room for another write. */
  get isAtLimit(): boolean {
    return this.run((database) => {
      return pragma(database, "page_count") + NEAR_LIMIT_PAGES >= pragma(database, "max_page_count");
    });
  }

  /** Gives free pages back to the file system, a few at a time. True: there are more. */
  shrinkStep(): boolean {
    return this.run((database) => {
      const free = pragma(database, "freelist_count");
      if (free > 0) database.query(`PRAGMA incremental_vacuum(${STEP_PAGES})`).all();
      if (free > STEP_PAGES) return true;
      database.query("PRAGMA wal_checkpoint(TRUNCATE)").all();
      return false;
    });
  }

  close(): void {
    const { database } = this.#open ?? {};
    this.#open = undefined;
    try {
      database?.close();
    } catch {
      // The file may be gone, or full, or another disk by now; there is nothing left to be done with it.
    }
  }

  #connect() {
    const { path, schema, opened } = this.#parts;
    if (this.#open !== undefined) {
      if (inodeOf(path) === this.#open.inode) return this.#open;
      this.close(); // the file was removed, or another one was put in its place
    }
    createPrivateFile(path);
    const database = new Database(path, { readwrite: true, strict: true });
    try {
      const version = pragma(database, "user_version");
      const isEmpty = database.query("SELECT 1 FROM sqlite_schema LIMIT 1").get() === null;
      // The database of another program is not written to, whatever the configuration says.
      if (version === 0 && !isEmpty) throw new Error("it is a database of something else");
      if (version > schema.version) throw new Error(`version ${version} of the file is not known`);
      makePrivate(path);
      // A wait for a lock would stop the requests of the whole process.
      database.run("PRAGMA busy_timeout = 0");
      database.run("PRAGMA auto_vacuum = INCREMENTAL"); // before the first table, or without effect
      database.run("PRAGMA journal_mode = WAL");
      database.run("PRAGMA synchronous = NORMAL");
      database.run("PRAGMA journal_size_limit = 8388608");
      limit(database, this.#maxBytes);
      if (version === 0) {
        database.transaction(() => database.run(`${schema.sql};\nPRAGMA user_version = ${schema.version};`))();
      }
      this.#open = { database, inode: inodeOf(path) ?? 0, connection: opened(database) };
      return this.#open;
    } catch (error) {
      database.close();
      throw error;
    }
  }

  /** A broken file is kept for a later look, one at most. */
  #setAside(): void {
    const { path, name, log } = this.#parts;
    try {
      renameSync(path, `${path}.broken`);
      for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
      log.warn({ path }, `the ${name} is broken; it was set aside as .broken, and a new one is begun`);
    } catch {
      // Tried again after the next failure.
    }
  }
}

/** Prepared once per connection. */
export function statement<Row>(database: Database, sql: string): Statement<Row, SQLQueryBindings[]> {
  return database.query<Row, SQLQueryBindings[]>(sql);
}

function limit(database: Database, maxBytes: number): void {
  database.run(`PRAGMA max_page_count = ${Math.max(1, Math.floor(maxBytes / pragma(database, "page_size")))}`);
}

function pragma(database: Database, name: string): number {
  return Object.values(database.query(`PRAGMA ${name}`).get() as Record<string, number>)[0] as number;
}

function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : error.name;
}
