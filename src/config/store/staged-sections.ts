// Sections that were changed but not applied yet, as rows of the database.

import type { Database } from "bun:sqlite";

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

interface Row {
  section: string;
  value: string | null;
  base: string | null;
  base_version: number;
  staged_at: number;
  source: string;
  user: string | null;
  description: string | null;
}

/** In the order in which they were staged. */
export function readStaged(sqlite: Database): StagedSection[] {
  const rows = sqlite.query<Row, []>("SELECT * FROM staged ORDER BY staged_at, rowid").all();
  return rows.map((row) => ({
    section: row.section,
    value: fromText(row.value),
    base: fromText(row.base),
    baseVersion: row.base_version,
    stagedAtMs: row.staged_at,
    source: row.source,
    user: row.user ?? undefined,
    description: row.description ?? undefined,
  }));
}

/** In place of what is staged for the same sections. */
export function writeStaged(sqlite: Database, sections: readonly StagedSection[]): void {
  const insert = sqlite.query("INSERT OR REPLACE INTO staged VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  for (const { section, value, base, baseVersion, stagedAtMs, source, user, description } of sections) {
    insert.run(
      section,
      toText(value),
      toText(base),
      baseVersion,
      stagedAtMs,
      source,
      user ?? null,
      description ?? null,
    );
  }
}

export function removeStaged(sqlite: Database, sections: readonly string[]): void {
  const remove = sqlite.query("DELETE FROM staged WHERE section = ?");
  for (const section of sections) remove.run(section);
}

function toText(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

function fromText(text: string | null): unknown {
  return text === null ? undefined : JSON.parse(text);
}
