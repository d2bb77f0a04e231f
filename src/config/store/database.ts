// The SQLite database of the configuration: versions and staged sections, in server.data_dir.

import { Database } from "bun:sqlite";
import { join } from "node:path";
import { type DatabaseSchema, openDurableDatabase, prepareDatabase } from "../../lib/durable-database.ts";
import { storageMessage } from "../../lib/storage-message.ts";
import { type Refused, refused } from "../change/change.ts";
import { DATABASE_NAME } from "../values/paths.ts";
import type { ConfigLog } from "./listeners.ts";

const SCHEMA: DatabaseSchema = {
  version: 1,
  sql: `
  CREATE TABLE versions (
    version INTEGER PRIMARY KEY,
    applied_at INTEGER NOT NULL,
    source TEXT NOT NULL,
    user TEXT,
    description TEXT,
    sections_changed TEXT NOT NULL,
    changes TEXT NOT NULL,
    document TEXT NOT NULL
  ) STRICT;
  CREATE TABLE staged (
    section TEXT PRIMARY KEY,
    value TEXT,
    base TEXT,
    base_version INTEGER NOT NULL,
    staged_at INTEGER NOT NULL,
    source TEXT NOT NULL,
    user TEXT,
    description TEXT
  ) STRICT;
  CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
`,
};

export class ConfigDatabase {
  readonly sqlite: Database;
  readonly path: string;
  /** Where the file lies; undefined for a database in memory. */
  readonly folder: string | undefined;
  /** Why nothing can be kept; the database is then one in memory. */
  readonly problem: string | undefined;
  readonly #log: Pick<ConfigLog, "error">;

  /**
   * Creates the folder and the file; a folder that cannot be written is no reason not to start. Without one nothing
   * outlives the process.
   */
  constructor(folder: string | undefined, log: Pick<ConfigLog, "error">) {
    this.path = folder === undefined ? IN_MEMORY : join(folder, DATABASE_NAME);
    this.#log = log;
    if (folder === undefined) {
      this.sqlite = openInMemory();
      return;
    }
    try {
      this.sqlite = openFile(this.path);
      this.folder = folder;
    } catch (error) {
      this.sqlite = openInMemory();
      const reason = storageMessage(error);
      this.problem = `${this.path} cannot be used: ${reason}`;
      const message = `${this.path} cannot be used (${reason}): changes through the admin API are refused`;
      log.error({ path: this.path }, message);
    }
  }

  /** Of every change that the file does not keep; undefined while they can be kept. */
  get refusal(): Refused | undefined {
    if (this.problem === undefined) return undefined;
    return refused({ kind: "storage", message: `${this.problem}; changes cannot be kept, see server.data_dir` });
  }

  /** All or nothing. */
  write(task: () => void): Refused | undefined {
    try {
      this.sqlite.transaction(task).immediate();
      return undefined;
    } catch (error) {
      const message = `the change could not be kept: ${storageMessage(error)}`;
      this.#log.error({ path: this.path }, message);
      return refused({ kind: "storage", message });
    }
  }
}

const IN_MEMORY = ":memory:";

function openInMemory(): Database {
  const sqlite = new Database(IN_MEMORY, { strict: true });
  prepareDatabase(sqlite, SCHEMA);
  return sqlite;
}

function openFile(path: string): Database {
  // Documents hold secrets.
  const sqlite = openDurableDatabase(path, SCHEMA);
  try {
    // A damaged file is reported now, not with the first change.
    sqlite.query("SELECT count(*) FROM versions").get();
    return sqlite;
  } catch (error) {
    sqlite.close();
    throw error;
  }
}
