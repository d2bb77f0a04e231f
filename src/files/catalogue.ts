// The list of the stored files, in SQLite: what is known of each, and how much every owner keeps.

import type { Database } from "bun:sqlite";
import { type DatabaseSchema, openDurableDatabase } from "../lib/durable-database.ts";
import type { FilePage, FileQuery, FileUsage, StoredFile } from "./file-store.ts";
import { openPublishedRows } from "./published-rows.ts";

/** The row of `totals` that counts the files of all owners; no owner has this name. */
const ALL_OWNERS = "";

/** The totals are exact because nothing can change the files without them. */
const SCHEMA: DatabaseSchema = {
  version: 1,
  sql: `
  CREATE TABLE files (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    filename TEXT NOT NULL,
    media_type TEXT NOT NULL,
    purpose TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX files_of_owner ON files (owner, id);
  CREATE INDEX files_in_order ON files (owner, created_at, sequence);
  CREATE INDEX files_of_purpose ON files (owner, purpose, created_at, sequence);
  CREATE INDEX files_that_expire ON files (expires_at) WHERE expires_at IS NOT NULL;
  CREATE TABLE totals (owner TEXT PRIMARY KEY, count INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  INSERT INTO totals VALUES ('${ALL_OWNERS}', 0, 0);
  CREATE TRIGGER file_added AFTER INSERT ON files BEGIN
    INSERT INTO totals VALUES (NEW.owner, 1, NEW.bytes), ('${ALL_OWNERS}', 1, NEW.bytes)
      ON CONFLICT (owner) DO UPDATE SET count = count + 1, bytes = bytes + excluded.bytes;
  END;
  CREATE TRIGGER file_removed AFTER DELETE ON files BEGIN
    UPDATE totals SET count = count - 1, bytes = bytes - OLD.bytes WHERE owner IN (OLD.owner, '${ALL_OWNERS}');
    DELETE FROM totals WHERE owner = OLD.owner AND count = 0;
  END;
  CREATE TABLE leftovers (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
  CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
`,
};

const COLUMNS = `id, owner, filename, media_type AS mediaType, purpose, bytes, sha256, created_at AS createdAt,
  expires_at AS expiresAt`;

type FileRow = Omit<StoredFile, "expiresAt"> & { expiresAt: number | null };

interface CatalogPosition {
  createdAt: number;
  sequence: number;
}

/** Recovery compares this with the files on disk. */
interface KnownContent {
  id: string;
  bytes: number;
}

export type Catalogue = ReturnType<typeof openCatalogue>;

/**
 * Throws the file system's error or SQLite's; so does everything that it offers. Times are Unix times in seconds.
 * @param isShared - there is a list in a bucket, too
 */
export function openCatalogue(path: string, isShared = false) {
  const sqlite = openDurableDatabase(path, SCHEMA);
  try {
    // A damaged file is reported now, not with the first upload.
    sqlite.query("SELECT count FROM totals WHERE owner = ?").get(ALL_OWNERS);
  } catch (error) {
    sqlite.close();
    throw error;
  }
  const insert = sqlite.query(`
    INSERT INTO files (id, owner, filename, media_type, purpose, bytes, sha256, created_at, expires_at)
    VALUES ($id, $owner, $filename, $mediaType, $purpose, $bytes, $sha256, $createdAt, $expiresAt)`);
  // A file of another owner is looked up like one that never was: by the same index, with the same result.
  const find = sqlite.query<FileRow, [string, string, number]>(
    `SELECT ${COLUMNS} FROM files WHERE owner = ? AND id = ? AND (expires_at IS NULL OR expires_at > ?)`,
  );
  const place = sqlite.query<CatalogPosition, [string, string, number]>(
    `SELECT created_at AS createdAt, sequence FROM files
     WHERE owner = ? AND id = ? AND (expires_at IS NULL OR expires_at > ?)`,
  );
  const remove = sqlite.query("DELETE FROM files WHERE id = ?");
  const note = sqlite.query("INSERT INTO leftovers VALUES (?) ON CONFLICT DO NOTHING");
  const forget = sqlite.query("DELETE FROM leftovers WHERE id = ?");
  const isKnown = sqlite.query("SELECT 1 FROM files WHERE id = ?");
  const total = sqlite.query<{ count: number; bytes: number }, [string]>(
    "SELECT count, bytes FROM totals WHERE owner = ?",
  );
  const shared = isShared ? openPublishedRows(sqlite) : undefined;
  const totalOfAll = () => total.get(ALL_OWNERS) ?? { count: 0, bytes: 0 };

  return {
    /**
     * False, and nothing inserted, where all files would have more than they may; 0: they may have any number of bytes.
     * `isPublished`: it stands in the list of the bucket.
     */
    insert(file: StoredFile, maxTotalBytes: number, isPublished = false): boolean {
      return sqlite
        .transaction(() => {
          // Other processes may have stored files since this one began to arrive.
          if (maxTotalBytes > 0 && totalOfAll().bytes + file.bytes > maxTotalBytes) return false;
          insert.run({ ...file, expiresAt: file.expiresAt ?? null });
          forget.run(file.id);
          if (isPublished) shared?.published(file.id);
          return true;
        })
        .immediate();
    },
    find(owner: string, id: string, now: number): StoredFile | undefined {
      const row = find.get(owner, id, now);
      return row === null ? undefined : toFile(row);
    },
    list(owner: string, query: FileQuery, now: number): FilePage {
      const placeOf = (id: string | undefined) => (id === undefined ? null : place.get(owner, id, now));
      return listFiles(sqlite, owner, query, { now, after: placeOf(query.after), before: placeOf(query.before) });
    },
    /** What is known of the list in the bucket; undefined: there is none. */
    shared,
    isKnown: (id: string) => isKnown.get(id) !== null,
    /** All or none; returns how many there were. `isNoted`: their contents are leftovers until they are forgotten. */
    remove(ids: readonly string[], isNoted = false): number {
      return sqlite
        .transaction(() => {
          let removed = 0;
          for (const id of ids) {
            shared?.removed(id, isNoted);
            if (remove.run(id).changes === 0) continue;
            removed++;
            if (isNoted) note.run(id);
          }
          return removed;
        })
        .immediate();
    },
    /** There may be a content without a row from now on. */
    note: (id: string) => void note.run(id),
    forget: (id: string) => void forget.run(id),
    leftovers: () =>
      sqlite
        .query<{ id: string }, []>("SELECT id FROM leftovers")
        .all()
        .map(({ id }) => id),
    expired(now: number, limit: number): string[] {
      const rows = sqlite.query<{ id: string }, [number, number]>(
        "SELECT id FROM files WHERE expires_at <= ? ORDER BY expires_at LIMIT ?",
      );
      return rows.all(now, limit).map(({ id }) => id);
    },
    /** In the order of ids, from behind one of them ("": from the beginning). */
    contentsAfter(id: string, limit: number): KnownContent[] {
      const rows = sqlite.query<KnownContent, [string, number]>(
        "SELECT id, bytes FROM files WHERE id > ? ORDER BY id LIMIT ?",
      );
      return rows.all(id, limit);
    },
    totalBytes: () => totalOfAll().bytes,
    /** With files whose time is over until they are removed: they take space still. */
    usage(): FileUsage {
      const owners = sqlite.query<FileUsage["owners"][number], [string]>(
        "SELECT owner, count, bytes FROM totals WHERE owner <> ? ORDER BY owner",
      );
      return { ...totalOfAll(), owners: owners.all(ALL_OWNERS) };
    },
    /** A name of this list that no other has; it stays the same as long as the list is there. */
    name(): string {
      const kept = sqlite.query<{ value: string }, []>("SELECT value FROM state WHERE key = 'name'");
      const made = crypto.randomUUID();
      sqlite.query("INSERT INTO state VALUES ('name', ?) ON CONFLICT DO NOTHING").run(made);
      return kept.get()?.value ?? made;
    },
    close(): void {
      sqlite.close();
    },
  };
}

interface PageBounds {
  now: number;
  /** Null: not given, or not known. */
  after: CatalogPosition | null;
  before: CatalogPosition | null;
}

function listFiles(sqlite: Database, owner: string, query: FileQuery, { now, after, before }: PageBounds): FilePage {
  const { limit, purpose } = query;
  const [behind, ahead] = query.order === "asc" ? [">", "<"] : ["<", ">"];
  const conditions = ["owner = ?", "(expires_at IS NULL OR expires_at > ?)"];
  const values: (string | number)[] = [owner, now];
  const add = (condition: string, ...more: (string | number)[]) => {
    conditions.push(condition);
    values.push(...more);
  };
  if (purpose !== undefined) add("purpose = ?", purpose);
  if (after !== null) add(`(created_at, sequence) ${behind} (?, ?)`, after.createdAt, after.sequence);
  if (before !== null) add(`(created_at, sequence) ${ahead} (?, ?)`, before.createdAt, before.sequence);
  // A page that only ends somewhere is what stands right before that place: it is read backwards from there.
  const isBackwards = before !== null && after === null;
  const direction = (query.order === "asc") === isBackwards ? "DESC" : "ASC";
  const rows = sqlite
    .query<FileRow, (string | number)[]>(
      `SELECT ${COLUMNS} FROM files WHERE ${conditions.join(" AND ")}
       ORDER BY created_at ${direction}, sequence ${direction} LIMIT ?`,
    )
    .all(...values, limit + 1);
  const files = rows.slice(0, limit).map(toFile);
  return { files: isBackwards ? files.reverse() : files, hasMore: rows.length > limit };
}

function toFile(row: FileRow): StoredFile {
  return { ...row, expiresAt: row.expiresAt ?? undefined };
}
