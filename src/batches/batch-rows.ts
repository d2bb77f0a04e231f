// The list of batches, in SQLite: a row for each, whole in one column; the other columns are those that are searched.

import { type DatabaseSchema, openDurableDatabase } from "../lib/durable-database.ts";
import { type AnyBatchQuery, type BatchPage, type BatchQuery, hasEnded, type StoredBatch } from "./batch-store.ts";

const SCHEMA: DatabaseSchema = {
  version: 1,
  sql: `
  CREATE TABLE batches (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    format TEXT NOT NULL,
    ended_at INTEGER,
    facts TEXT NOT NULL
  ) STRICT;
  CREATE INDEX batches_in_order ON batches (owner, format, sequence);
  CREATE INDEX open_batches ON batches (sequence, owner) WHERE ended_at IS NULL;
  CREATE INDEX ended_batches ON batches (ended_at) WHERE ended_at IS NOT NULL;
`,
};

interface BatchRow {
  facts: string;
}

/** Throws the file system's error or SQLite's; so does everything that it offers. */
export function openBatchRows(path: string) {
  const sqlite = openDurableDatabase(path, SCHEMA);
  const insert = sqlite.query("INSERT INTO batches (id, owner, format, facts) VALUES (?, ?, ?, ?)");
  const update = sqlite.query("UPDATE batches SET facts = ?, ended_at = ? WHERE id = ?");
  const find = sqlite.query<BatchRow, [string, string]>("SELECT facts FROM batches WHERE owner = ? AND id = ?");
  const place = sqlite.query<{ sequence: number }, [string, string]>(
    "SELECT sequence FROM batches WHERE owner = ? AND id = ?",
  );
  const list = sqlite.query<BatchRow, [string, string, number, number]>(
    "SELECT facts FROM batches WHERE owner = ? AND format = ? AND sequence < ? ORDER BY sequence DESC LIMIT ?",
  );
  const newer = sqlite.query<BatchRow, [string, string, number, number]>(
    "SELECT facts FROM batches WHERE owner = ? AND format = ? AND sequence > ? ORDER BY sequence LIMIT ?",
  );
  const listAll = sqlite.query<BatchRow, [number, number]>(
    "SELECT facts FROM batches WHERE sequence < ? ORDER BY sequence DESC LIMIT ?",
  );
  const anyPlace = sqlite.query<{ sequence: number }, [string]>("SELECT sequence FROM batches WHERE id = ?");
  const findAny = sqlite.query<BatchRow, [string]>("SELECT facts FROM batches WHERE id = ?");
  const remove = sqlite.query("DELETE FROM batches WHERE owner = ? AND id = ?");
  const unfinished = sqlite.query<BatchRow, [number]>(
    "SELECT facts FROM batches WHERE ended_at IS NULL ORDER BY sequence LIMIT ?",
  );
  const allOpen = sqlite.query<{ count: number }, []>("SELECT count(*) AS count FROM batches WHERE ended_at IS NULL");
  const removeEnded = sqlite.query("DELETE FROM batches WHERE ended_at < ?");
  const open = sqlite.query<{ count: number }, [string]>(
    "SELECT count(*) AS count FROM batches WHERE ended_at IS NULL AND owner = ?",
  );
  return {
    /** False, and nothing inserted, where the owner has as many open ones as it may. */
    insert(batch: StoredBatch, maxOpen: number): boolean {
      return sqlite
        .transaction(() => {
          if ((open.get(batch.owner)?.count ?? 0) >= maxOpen) return false;
          insert.run(batch.id, batch.owner, batch.format, JSON.stringify(batch));
          return true;
        })
        .immediate();
    },
    /** @param now - Unix time in seconds */
    update(batch: StoredBatch, now: number): void {
      update.run(JSON.stringify(batch), hasEnded(batch) ? now : null, batch.id);
    },
    find(owner: string, id: string): StoredBatch | undefined {
      return toBatch(find.get(owner, id));
    },
    list(owner: string, { format, limit, after, before }: BatchQuery): BatchPage {
      const placeOf = (id: string | undefined) => (id === undefined ? undefined : place.get(owner, id)?.sequence);
      const ceiling = placeOf(before);
      const rows =
        ceiling === undefined
          ? list.all(owner, format, placeOf(after) ?? Number.MAX_SAFE_INTEGER, limit + 1)
          : newer.all(owner, format, ceiling, limit + 1);
      const batches = rows.slice(0, limit).map((row) => JSON.parse(row.facts) as StoredBatch);
      return { batches: ceiling === undefined ? batches : batches.reverse(), hasMore: rows.length > limit };
    },
    listAll({ limit, after }: AnyBatchQuery): BatchPage {
      const before = after === undefined ? undefined : anyPlace.get(after)?.sequence;
      const rows = listAll.all(before ?? Number.MAX_SAFE_INTEGER, limit + 1);
      const batches = rows.slice(0, limit).map((row) => JSON.parse(row.facts) as StoredBatch);
      return { batches, hasMore: rows.length > limit };
    },
    findAny: (id: string) => toBatch(findAny.get(id)),
    /** False where there is none. */
    remove: (owner: string, id: string) => remove.run(owner, id).changes > 0,
    isKnown: (id: string) => anyPlace.get(id) !== null,
    openOf: (owner: string) => open.get(owner)?.count ?? 0,
    /** The oldest that are not finished. */
    open: (limit: number) => unfinished.all(limit).map((row) => JSON.parse(row.facts) as StoredBatch),
    openCount: () => allOpen.get()?.count ?? 0,
    /** @param before - Unix time in seconds */
    removeEnded: (before: number) => void removeEnded.run(before),
    close: () => sqlite.close(),
  };
}

function toBatch(row: BatchRow | null): StoredBatch | undefined {
  return row === null ? undefined : (JSON.parse(row.facts) as StoredBatch);
}
