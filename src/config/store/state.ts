// Single values beside the versions, as rows of the database.

import type { Database } from "bun:sqlite";

export function readState(sqlite: Database, key: string): string | undefined {
  return sqlite.query<{ value: string }, [string]>("SELECT value FROM state WHERE key = ?").get(key)?.value;
}

export function writeState(sqlite: Database, key: string, value: string): void {
  sqlite
    .query("INSERT INTO state (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2")
    .run(key, value);
}
