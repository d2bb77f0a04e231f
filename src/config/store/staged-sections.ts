// Sections that were changed but not applied yet, as rows of the database.

import type { Database } from "bun:sqlite";
import { type DatabaseRow, fromRow, toRow } from "./rows.ts";

export interface StagedSection {
  section: string;
  /** The section as it is to be, as written: it may hold secrets. Undefined removes it, so that defaults count. */
  value: unknown;
  /** The section as it was when the change began; a later change by someone else is a conflict. */
  base: unknown;
  baseVersion: number;
  stagedAtMs: number;
  source: string;
  user: string | undefined;
  description: string | undefined;
}

const JSON_FIELDS = ["value", "base"];

/** Keeps the order in which they were staged. */
export function readStaged(sqlite: Database): StagedSection[] {
  const columns =
    "section, value, base, base_version AS baseVersion, staged_at AS stagedAtMs, source, user, description";
  const rows = sqlite.query<DatabaseRow, []>(`SELECT ${columns} FROM staged ORDER BY staged_at, rowid`).all();
  return rows.map((row) => fromRow(row, JSON_FIELDS));
}

/** Replaces earlier entries of the same sections. */
export function writeStaged(sqlite: Database, sections: readonly StagedSection[]): void {
  const insert = sqlite.query(
    `INSERT OR REPLACE INTO staged
     VALUES ($section, $value, $base, $baseVersion, $stagedAtMs, $source, $user, $description)`,
  );
  for (const section of sections) insert.run(toRow(section, JSON_FIELDS));
}

export function removeStaged(sqlite: Database, sections: readonly string[]): void {
  const remove = sqlite.query("DELETE FROM staged WHERE section = ?");
  for (const section of sections) remove.run(section);
}
