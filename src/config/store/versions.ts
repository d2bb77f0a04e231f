// Versions of the configuration as rows of the database.

import type { Database } from "bun:sqlite";
import type { FieldChange } from "../change/diff.ts";
import type { Mapping } from "../values/values.ts";
import { type DatabaseRow, fromRow, toRow } from "./rows.ts";

export interface VersionEntry {
  version: number;
  appliedAtMs: number;
  /** api, import, rollback, file_reload, startup, … */
  source: string;
  user: string | undefined;
  description: string | undefined;
  sectionsChanged: string[];
  /** Masked; a very long list is kept in part. */
  changes: FieldChange[];
}

export interface VersionRecord extends VersionEntry {
  /** Unmasked: it may hold secrets. */
  document: Mapping;
}

export interface HistoryPage {
  entries: VersionEntry[];
  /** Number of entries on all pages. */
  total: number;
}

const MAXIMUM_CHANGES = 1_000;
/** Documents of all versions together; at least the newest ones are kept. */
const MAXIMUM_BYTES = 256 * 1024 * 1024;
const ALWAYS_KEPT = 2;

/** Versions that came from the file, not from the API. */
const FILE_SOURCES = ["startup", "file_reload"] as const;

/** Another process has written to the same database. */
class ForeignWriteError extends Error {
  constructor() {
    super("another process that uses the same server.data_dir has changed the configuration; restart one of them");
  }
}

const ENTRY_COLUMNS =
  "version, applied_at AS appliedAtMs, source, user, description, sections_changed AS sectionsChanged, changes";
const JSON_FIELDS = ["sectionsChanged", "changes", "document"];

export function newestVersion(sqlite: Database): VersionRecord | undefined {
  return readRecord(sqlite, "ORDER BY version DESC LIMIT 1");
}

export function readVersion(sqlite: Database, version: number): VersionRecord | undefined {
  return readRecord(sqlite, "WHERE version = ?", version);
}

/** The newest version that came from the file alone. */
export function newestFromFile(sqlite: Database): VersionRecord | undefined {
  const sources = FILE_SOURCES.map((source) => `'${source}'`).join(", ");
  return readRecord(sqlite, `WHERE source IN (${sources}) ORDER BY version DESC LIMIT 1`);
}

function readRecord(sqlite: Database, condition: string, ...values: number[]): VersionRecord | undefined {
  const row = sqlite
    .query<DatabaseRow, number[]>(`SELECT ${ENTRY_COLUMNS}, document FROM versions ${condition}`)
    .get(...values);
  return row === null ? undefined : fromRow(row, JSON_FIELDS);
}

/** Newest first. */
export function readPage(
  sqlite: Database,
  { limit, offset, section }: { limit: number; offset: number; section?: string | undefined },
): HistoryPage {
  const where = "(?1 IS NULL OR EXISTS (SELECT 1 FROM json_each(sections_changed) WHERE value = ?1))";
  const rows = sqlite
    .query<DatabaseRow, [string | null, number, number]>(
      `SELECT ${ENTRY_COLUMNS} FROM versions WHERE ${where} ORDER BY version DESC LIMIT ?2 OFFSET ?3`,
    )
    .all(section ?? null, limit, offset);
  const total = sqlite
    .query<{ total: number }, [string | null]>(`SELECT count(*) AS total FROM versions WHERE ${where}`)
    .get(section ?? null)?.total;
  return { entries: rows.map((row) => fromRow<VersionEntry>(row, JSON_FIELDS)), total: total ?? 0 };
}

/** Inside a transaction. `keep` versions stay, the new ones among them. */
export function appendVersions(sqlite: Database, records: readonly VersionRecord[], keep: number): void {
  const first = records[0];
  if (first === undefined) return;
  const newest = sqlite
    .query<{ newest: number | null }, []>("SELECT max(version) AS newest FROM versions")
    .get()?.newest;
  if (newest !== null && newest !== undefined && newest >= first.version) throw new ForeignWriteError();
  const insert = sqlite.query(
    `INSERT INTO versions
     VALUES ($version, $appliedAtMs, $source, $user, $description, $sectionsChanged, $changes, $document)`,
  );
  for (const record of records) {
    insert.run(toRow({ ...record, changes: record.changes.slice(0, MAXIMUM_CHANGES) }, JSON_FIELDS));
  }
  prune(sqlite, keep);
}

function prune(sqlite: Database, keep: number): void {
  sqlite
    .query(
      `DELETE FROM versions WHERE version IN (
         SELECT version FROM (
           SELECT version, row_number() OVER newest AS position, sum(length(document)) OVER newest AS bytes
           FROM versions WINDOW newest AS (ORDER BY version DESC)
         ) WHERE position > ?1 OR (position > ?2 AND bytes > ?3))`,
    )
    .run(Math.max(keep, 1), ALWAYS_KEPT, MAXIMUM_BYTES);
}
