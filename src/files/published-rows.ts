// What a list of files knows of the list in the bucket: which files stand there, and which have to go from it.

import type { Database } from "bun:sqlite";
import type { StoredFile } from "./file-store.ts";

/** Beside the tables of the catalogue, which programs without these read as before. */
const TABLES = `
  CREATE TABLE IF NOT EXISTS published (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS withdrawn (id TEXT PRIMARY KEY, owner TEXT NOT NULL) STRICT, WITHOUT ROWID;
`;

export type PublishedRows = ReturnType<typeof openPublishedRows>;

/** Throws SQLite's errors; so does everything that it offers. */
export function openPublishedRows(sqlite: Database) {
  const isThere = sqlite.query("SELECT 1 FROM sqlite_schema WHERE name = 'withdrawn'").get() !== null;
  if (!isThere) sqlite.run(TABLES);
  const publish = sqlite.query("INSERT INTO published VALUES (?) ON CONFLICT DO NOTHING");
  const unpublish = sqlite.query("DELETE FROM published WHERE id = ?");
  const withdraw = sqlite.query("INSERT INTO withdrawn VALUES (?, ?) ON CONFLICT DO NOTHING");
  const withdrawListed = sqlite.query(`
    INSERT INTO withdrawn SELECT id, owner FROM files JOIN published USING (id) WHERE id = ? ON CONFLICT DO NOTHING`);
  const forget = sqlite.query("DELETE FROM withdrawn WHERE id = ?");
  const isPublished = sqlite.query("SELECT 1 FROM published WHERE id = ?");
  const ownerOfWithdrawn = sqlite.query<{ owner: string }, [string]>("SELECT owner FROM withdrawn WHERE id = ?");
  return {
    /** The file stands in the bucket's list from now on. Inside of a transaction that adds its row. */
    published(id: string): void {
      publish.run(id);
      forget.run(id);
    },
    /** Inside of a transaction that removes its row. `isNoted`: it is still in the bucket's list, and must go from there. */
    removed(id: string, isNoted: boolean): void {
      if (isNoted) withdrawListed.run(id);
      unpublish.run(id);
    },
    /** There may be an entry without a row from now on. */
    note: ({ id, owner }: Pick<StoredFile, "id" | "owner">) => void withdraw.run(id, owner),
    forget: (id: string) => void forget.run(id),
    isPublished: (id: string) => isPublished.get(id) !== null,
    /** Of an entry that has to go from the bucket's list; undefined: it stays, or never was there. */
    ownerOfWithdrawn: (id: string) => ownerOfWithdrawn.get(id)?.owner,
    withdrawn: () =>
      sqlite
        .query<{ id: string }, []>("SELECT id FROM withdrawn")
        .all()
        .map(({ id }) => id),
    /** Rows that are added later have higher ones. */
    lastSequence: () =>
      sqlite.query<{ last: number | null }, []>("SELECT max(sequence) AS last FROM files").get()?.last ?? 0,
    /** Files that stand in the bucket's list, behind one id and up to another one. */
    idsOf(owner: string, after: string, until: string | undefined, lastSequence: number): string[] {
      const ids = sqlite.query<{ id: string }, [string, string, string, number]>(
        "SELECT id FROM files JOIN published USING (id) WHERE owner = ? AND id > ? AND id <= ? AND sequence <= ?",
      );
      return ids.all(owner, after, until ?? "\u{10ffff}", lastSequence).map(({ id }) => id);
    },
    /** There are rows of a program that kept no list in the bucket. */
    hasOthers: () => sqlite.query("SELECT 1 FROM files WHERE id NOT IN (SELECT id FROM published)").get() !== null,
  };
}
