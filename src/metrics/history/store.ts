// The metrics history on disk: an SQLite file of samples. Every operation either works or throws a StorageError at once.

import type { Database } from "bun:sqlite";
import { getOrMake } from "../../lib/get-or-make.ts";
import { ResilientDatabase, StorageError, statement } from "../../lib/resilient-database.ts";
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
const START_METRIC = "process_start_time_seconds";
/** Restarts that are looked for in one answer. */
const MAX_RESTARTS = 200;
/** Rows that one step of forgetting removes before others get their turn. */
const STEP_ROWS = 2_000;
const MAX_KNOWN_SERIES = 100_000;
/** How often it is noted of a series that it is still written; its names may go some time after the last note. */
const NOTED_EVERY_MS = DAY_MS;

/**
 * A sample's place is (family, ts, series): a snapshot touches a page or two per family, and a query for a family reads
 * what it answers in one go. admin/history-view.ts turns the rows into answers.
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
`;

interface Id {
  id: number;
}

interface HistoryConnection {
  /** Ids of families and series, by their names. */
  families: Map<string, number>;
  series: Map<string, number>;
  /** Since when the series are known here; each is noted when it becomes known. */
  notedMs: number;
}

export class HistoryStore {
  readonly #file: ResilientDatabase<HistoryConnection>;

  constructor({ path, log, maxBytes = DEFAULT_MAX_BYTES }: HistoryStoreParts) {
    this.#file = new ResilientDatabase<HistoryConnection>({
      ...{ path, log, maxBytes },
      name: "metrics history",
      schema: { version: 1, sql: SCHEMA },
      opened: () => ({ families: new Map(), series: new Map(), notedMs: 0 }),
    });
  }

  /** All of these or none. Writing the same moment again takes the place of what was there. */
  write(ts: number, samples: readonly MetricSample[]): void {
    try {
      this.#file.run((database, connection) => insert(database, connection, ts, samples));
    } catch (error) {
      // Old rows make room at our own size limit only: on a full disk, other programs would take what is freed.
      if (!(error instanceof StorageError) || error.code !== "SQLITE_FULL" || !this.#file.isAtLimit) throw error;
      this.forgetStep(ts);
      this.#file.run((database, connection) => insert(database, connection, ts, samples));
    }
  }

  read({ metric, fromMs, toMs, limit, after }: RangeQuery): StoredSample[] {
    return this.#file.run((database) => {
      const family = familyOf(database, metric);
      if (family === undefined) return [];
      const { ts, series } = after ?? { ts: fromMs, series: 0 };
      return statement<StoredSample>(
        database,
        `SELECT points.ts, points.series, series.labels, points.value, series.kind
         FROM points JOIN series ON series.id = points.series
         WHERE points.family = ?1 AND points.ts < ?2 AND (points.ts, points.series) > (?3, ?4)
         ORDER BY points.ts, points.series LIMIT ?5`,
      ).all(family, toMs, ts, series, limit);
    });
  }

  /** The last snapshot of a metric up to a moment, and the first one behind it. */
  momentsAround(metric: string, atMs: number): { before?: number | undefined; after?: number | undefined } {
    return this.#file.run((database) => {
      const family = familyOf(database, metric);
      if (family === undefined) return {};
      const select = (which: string) => `SELECT ${which} AS ts FROM points WHERE family = ?`;
      const before = statement<{ ts: number | null }>(database, `${select("MAX(ts)")} AND ts <= ?`).get(family, atMs);
      const after = statement<{ ts: number | null }>(database, `${select("MIN(ts)")} AND ts > ?`).get(family, atMs);
      return { before: before?.ts ?? undefined, after: after?.ts ?? undefined };
    });
  }

  /** The samples of a metric that were written at a moment. */
  snapshot(metric: string, ts: number): StoredSample[] {
    return this.#file.run((database) => {
      const family = familyOf(database, metric);
      if (family === undefined) return [];
      return statement<StoredSample>(
        database,
        `SELECT points.ts, points.series, series.labels, points.value, series.kind
         FROM points JOIN series ON series.id = points.series WHERE points.family = ? AND points.ts = ?`,
      ).all(family, ts);
    });
  }

  /** The snapshots on both sides of each restart of the gateway between two snapshots; found by halves, because there are few. */
  restarts(firstMs: number, lastMs: number): { before: number; after: number }[] {
    const startedAt = (ts: number) => this.snapshot(START_METRIC, ts)[0]?.value;
    const found: { before: number; after: number }[] = [];
    const search = (low: number, high: number) => {
      if (low >= high || found.length >= MAX_RESTARTS || startedAt(low) === startedAt(high)) return;
      const { after } = this.momentsAround(START_METRIC, low);
      if (after === undefined || after >= high) {
        found.push({ before: low, after: high });
        return;
      }
      const { before = after } = this.momentsAround(START_METRIC, Math.floor((low + high) / 2));
      const middle = Math.max(before, after);
      search(low, middle);
      search(middle, high);
    };
    search(firstMs, lastMs);
    return found;
  }

  /** Removes the oldest snapshots before a moment, some thousand samples at a time. True: there are more. */
  forgetStep(beforeMs: number): boolean {
    return this.#file.run((database) => {
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
    this.#file.run((database, connection) => {
      connection.series.clear();
      connection.families.clear();
      statement(database, "DELETE FROM series WHERE last_ts < ?").run(beforeMs - 2 * NOTED_EVERY_MS);
      statement(database, "DELETE FROM families WHERE id NOT IN (SELECT family FROM series)").run();
    });
  }

  /** Gives free pages back to the file system, a few at a time. True: there are more. */
  shrinkStep(): boolean {
    return this.#file.shrinkStep();
  }

  close(): void {
    this.#file.close();
  }
}

function insert(database: Database, connection: HistoryConnection, ts: number, samples: readonly MetricSample[]): void {
  const { families, series } = connection;
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

function familyOf(database: Database, metric: string): number | undefined {
  return statement<Id>(database, "SELECT id FROM families WHERE metric = ?").get(metric)?.id;
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
