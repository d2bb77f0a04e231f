// The metrics history on disk: an SQLite file of samples. Every operation either works or throws a HistoryError at once;
// it never waits for a lock. A file that is locked, full, gone or broken is dealt with at the next operation.

import { Database, type SQLQueryBindings, type Statement } from "bun:sqlite";
import { renameSync, rmSync, statSync } from "node:fs";
import { getOrMake } from "../../lib/get-or-make.ts";
import { createPrivateFile, makePrivate } from "../../lib/private-file.ts";
import type { Logger } from "../../logging/logger.ts";
import type { MetricSample } from "../registry.ts";

export const DAY_MS = 86_400_000;

interface HistoryStoreParts {
  /** Absolute. */
  path: string;
  log: Logger;
  /** The file does not grow beyond this: the oldest samples make room. */
  maxBytes?: number;
}

/** Storage did not do what it was asked to; the message has no content of the file. */
export class HistoryError extends Error {
  override name = "HistoryError";
}

export interface StoredSample {
  ts: number;
  series: number;
  /** Canonical JSON. */
  labels: string;
  value: number;
  kind: string;
}

export interface RangeQuery {
  metric: string;
  /** Inclusive. */
  fromMs: number;
  /** Exclusive. */
  toMs: number;
  limit: number;
  /** The last sample of the page before. */
  after?: { ts: number; series: number } | undefined;
}

const DEFAULT_MAX_BYTES = 1024 ** 3;
/** Rows that one step of forgetting removes before others get their turn. */
const STEP_ROWS = 2_000;
const MAX_KNOWN_SERIES = 100_000;
/** How often it is noted of a series that it is still written; its names may go some time after the last note. */
const NOTED_EVERY_MS = DAY_MS;
const NEAR_LIMIT_PAGES = 256;

/**
 * A sample's place is (family, ts, series): a snapshot touches a page or two per family, and a query for a family reads
 * what it answers in one go. The view shows the rows as the specification describes them.
 */
const SCHEMA = `
CREATE TABLE IF NOT EXISTS families (id INTEGER PRIMARY KEY, metric TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS series (
  id INTEGER PRIMARY KEY, family INTEGER NOT NULL, labels TEXT NOT NULL, kind TEXT NOT NULL, last_ts INTEGER NOT NULL,
  UNIQUE (family, labels, kind)
);
CREATE TABLE IF NOT EXISTS points (
  family INTEGER NOT NULL, ts INTEGER NOT NULL, series INTEGER NOT NULL, value REAL NOT NULL,
  PRIMARY KEY (family, ts, series)
) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS samples AS
  SELECT points.ts AS ts, families.metric AS metric, series.labels AS labels, points.value AS value, series.kind AS kind
  FROM points JOIN series ON series.id = points.series JOIN families ON families.id = points.family;
PRAGMA user_version = 1;
`;

interface Id {
  id: number;
}

interface Connection {
  database: Database;
  /** Tells the file that was opened from another one under its name. */
  inode: number;
  /** Ids of families and series, by their names. */
  families: Map<string, number>;
  series: Map<string, number>;
  /** Since when the series are known here; each is noted when it becomes known. */
  notedMs: number;
}

export class HistoryStore {
  readonly #parts: HistoryStoreParts;
  #connection: Connection | undefined;

  constructor(parts: HistoryStoreParts) {
    this.#parts = parts;
  }

  /** All of these or none. Writing the same moment again takes the place of what was there. */
  write(ts: number, samples: readonly MetricSample[]): void {
    try {
      this.#run((connection) => insert(connection, ts, samples));
    } catch (error) {
      // A disk that is full is not our doing, and what we gave up others would take.
      if (!(error instanceof HistoryError) || codeOf(error.cause) !== "SQLITE_FULL" || !this.#isAtLimit()) throw error;
      this.forgetStep(ts);
      this.#run((connection) => insert(connection, ts, samples));
    }
  }

  read({ metric, fromMs, toMs, limit, after }: RangeQuery): StoredSample[] {
    return this.#run(({ database }) => {
      const family = statement<Id>(database, "SELECT id FROM families WHERE metric = ?").get(metric);
      if (family === null) return [];
      const { ts, series } = after ?? { ts: fromMs, series: 0 };
      return statement<StoredSample>(
        database,
        `SELECT points.ts, points.series, series.labels, points.value, series.kind
         FROM points JOIN series ON series.id = points.series
         WHERE points.family = ?1 AND points.ts < ?2 AND (points.ts, points.series) > (?3, ?4)
         ORDER BY points.ts, points.series LIMIT ?5`,
      ).all(family.id, toMs, ts, series, limit);
    });
  }

  /** Removes the oldest snapshots before a moment, some thousand samples at a time. True: there are more. */
  forgetStep(beforeMs: number): boolean {
    return this.#run(({ database }) => {
      const families = statement<Id>(database, "SELECT id FROM families").all();
      let removed = 0;
      while (removed < STEP_ROWS) {
        const oldest = oldestOf(database, families);
        if (oldest === undefined || oldest >= beforeMs) return false;
        database.transaction(() => {
          for (const { id } of families) {
            const { changes } = statement(database, "DELETE FROM points WHERE family = ? AND ts <= ?").run(id, oldest);
            removed += changes;
          }
        })();
      }
      return true;
    });
  }

  /** Forgets the names of series without samples, given the moment before which there are none. */
  forgetSeries(beforeMs: number): void {
    this.#run((connection) => {
      connection.series.clear();
      connection.families.clear();
      const { database } = connection;
      statement(database, "DELETE FROM series WHERE last_ts < ?").run(beforeMs - 2 * NOTED_EVERY_MS);
      statement(database, "DELETE FROM families WHERE id NOT IN (SELECT family FROM series)").run();
    });
  }

  /** Gives free pages back to the file system, a few at a time. True: there are more. */
  shrinkStep(): boolean {
    return this.#run(({ database }) => {
      const { freelist_count: free } = database.query("PRAGMA freelist_count").get() as { freelist_count: number };
      if (free > 0) database.query("PRAGMA incremental_vacuum(256)").all();
      if (free > 256) return true;
      database.query("PRAGMA wal_checkpoint(TRUNCATE)").all();
      return false;
    });
  }

  close(): void {
    const { database } = this.#connection ?? {};
    this.#connection = undefined;
    try {
      database?.close();
    } catch {
      // The file may be gone, or full, or another disk by now; there is nothing left to be done with it.
    }
  }

  #run<Result>(work: (connection: Connection) => Result): Result {
    try {
      return work(this.#connect());
    } catch (error) {
      const code = codeOf(error);
      // Locked or full: the connection is good, and so may the next attempt be.
      if (code !== "SQLITE_BUSY" && code !== "SQLITE_LOCKED" && code !== "SQLITE_FULL") this.close();
      if (code === "SQLITE_CORRUPT" || code === "SQLITE_NOTADB") this.#setAside();
      throw new HistoryError(`The metrics history cannot be used at the moment (${code}).`, { cause: error });
    }
  }

  #connect(): Connection {
    const { path, maxBytes = DEFAULT_MAX_BYTES } = this.#parts;
    if (this.#connection !== undefined) {
      if (inodeOf(path) === this.#connection.inode) return this.#connection;
      this.close(); // somebody has removed the file, or put another in its place
    }
    createPrivateFile(path);
    const database = new Database(path, { readwrite: true, strict: true });
    try {
      const { user_version: version } = database.query("PRAGMA user_version").get() as { user_version: number };
      const isEmpty = database.query("SELECT 1 FROM sqlite_schema LIMIT 1").get() === null;
      // The database of another program is not written to, whatever the configuration says.
      if (version === 0 && !isEmpty) throw new Error("it is a database of something else");
      if (version > 1) throw new Error(`version ${version} of the file is not known`);
      makePrivate(path);
      // Nobody waits for a lock: that would stop the requests of the whole process.
      database.run("PRAGMA busy_timeout = 0");
      database.run("PRAGMA auto_vacuum = INCREMENTAL"); // before the first table, or without effect
      database.run("PRAGMA journal_mode = WAL");
      database.run("PRAGMA synchronous = NORMAL");
      database.run("PRAGMA journal_size_limit = 8388608");
      const { page_size: pageBytes } = database.query("PRAGMA page_size").get() as { page_size: number };
      database.run(`PRAGMA max_page_count = ${Math.floor(maxBytes / pageBytes)}`);
      if (version === 0) database.transaction(() => database.run(SCHEMA))();
    } catch (error) {
      database.close();
      throw error;
    }
    this.#connection = { database, inode: inodeOf(path) ?? 0, families: new Map(), series: new Map(), notedMs: 0 };
    return this.#connection;
  }

  #isAtLimit(): boolean {
    return this.#run(({ database }) => {
      const { page_count: pages } = database.query("PRAGMA page_count").get() as { page_count: number };
      const { max_page_count: most } = database.query("PRAGMA max_page_count").get() as { max_page_count: number };
      return pages + NEAR_LIMIT_PAGES >= most;
    });
  }

  /** A broken file is kept for whoever wants to look into it, one at most. */
  #setAside(): void {
    const { path, log } = this.#parts;
    try {
      renameSync(path, `${path}.broken`);
      for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
      log.warn({ path }, "the metrics history is broken; it was set aside as .broken, and a new one is begun");
    } catch {
      // Tried again after the next failure.
    }
  }
}

function insert(connection: Connection, ts: number, samples: readonly MetricSample[]): void {
  const { database, families, series } = connection;
  if (series.size > MAX_KNOWN_SERIES || Math.abs(ts - connection.notedMs) > NOTED_EVERY_MS) {
    series.clear();
    connection.notedMs = ts;
  }
  const addFamily = statement<Id>(
    database,
    "INSERT INTO families (metric) VALUES (?) ON CONFLICT DO UPDATE SET metric = excluded.metric RETURNING id",
  );
  const addSeries = statement<Id>(
    database,
    `INSERT INTO series (family, labels, kind, last_ts) VALUES (?1, ?2, ?3, ?4)
     ON CONFLICT DO UPDATE SET last_ts = max(last_ts, excluded.last_ts) RETURNING id`,
  );
  const addPoint = statement(database, "INSERT OR REPLACE INTO points (family, ts, series, value) VALUES (?, ?, ?, ?)");
  try {
    database
      .transaction(() => {
        for (const { metric, labels, kind, value } of samples) {
          const family = getOrMake(families, metric, () => (addFamily.get(metric) as Id).id);
          const key = `${kind} ${family} ${labels}`;
          const one = getOrMake(series, key, () => (addSeries.get(family, labels, kind, ts) as Id).id);
          addPoint.run(family, ts, one, value);
        }
      })
      .immediate();
  } catch (error) {
    // Ids that were given in a transaction that fails must not be remembered.
    families.clear();
    series.clear();
    throw error;
  }
}

function oldestOf(database: Database, families: readonly Id[]): number | undefined {
  const query = statement<{ ts: number | null }>(database, "SELECT MIN(ts) AS ts FROM points WHERE family = ?");
  let oldest: number | undefined;
  for (const { id } of families) {
    const ts = query.get(id)?.ts;
    if (typeof ts === "number" && (oldest === undefined || ts < oldest)) oldest = ts;
  }
  return oldest;
}

/** Prepared once per connection. */
function statement<Row>(database: Database, sql: string): Statement<Row, SQLQueryBindings[]> {
  return database.query<Row, SQLQueryBindings[]>(sql);
}

function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : error.name;
}
