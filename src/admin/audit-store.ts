// The audit in an SQLite file. Every operation either works or throws a StorageError at once.

import { ResilientDatabase, StorageError, statement } from "../lib/resilient-database.ts";

export interface AuditEntry {
  atMs: number;
  /** Of the administrator; null where no sign-in is required, and without right credentials. */
  name: string | null;
  role: string | null;
  signInMethod: string | null;
  address: string | null;
  method: string;
  path: string;
  operation: string | null;
  subject: string | null;
  status: number;
  outcome: AuditOutcome;
  /** Refused attempts that this entry stands for. */
  repeats: number;
  /** JSON: the fields of the configuration before and after, masked. */
  changes: string | null;
}

export type AuditOutcome = "done" | "refused" | "failed";

export interface AuditFilter {
  sinceMs?: number | undefined;
  untilMs?: number | undefined;
  name?: string | undefined;
  operation?: string | undefined;
  outcome?: AuditOutcome | undefined;
  /** Entries before this one. */
  before?: number | undefined;
  limit: number;
}

const SCHEMA = `
CREATE TABLE entries (
  id INTEGER PRIMARY KEY AUTOINCREMENT, atMs INTEGER NOT NULL, name TEXT, role TEXT, signInMethod TEXT, address TEXT,
  method TEXT NOT NULL, path TEXT NOT NULL, operation TEXT, subject TEXT, status INTEGER NOT NULL, outcome TEXT NOT NULL,
  repeats INTEGER NOT NULL, changes TEXT
) STRICT;
CREATE INDEX entries_in_order ON entries (atMs);
CREATE INDEX entries_by_outcome ON entries (outcome, id)`;

/** Entries that make room at a time. */
const STEP_ENTRIES = 500;

interface AuditStoreParts {
  /** Absolute. */
  path: string;
  maxBytes: number;
  log: { warn(fields: object, message: string): void };
}

export type AuditStore = ReturnType<typeof createAuditStore>;

export function createAuditStore({ path, maxBytes, log }: AuditStoreParts) {
  const file = new ResilientDatabase({
    ...{ path, maxBytes, log },
    name: "audit",
    schema: { version: 1, sql: SCHEMA },
    opened: () => undefined,
  });

  function insert(entry: AuditEntry): void {
    file.run((database) => {
      const sql = "INSERT INTO entries VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
      const { atMs, name, role, signInMethod, address, method, path, operation, subject } = entry;
      const { status, outcome, repeats, changes } = entry;
      statement(database, sql).run(
        ...[atMs, name, role, signInMethod, address, method, path],
        ...[operation, subject, status, outcome, repeats, changes],
      );
    });
  }

  /** Refused attempts make room first: an attacker must not push out what administrators did. */
  function makeRoom(): void {
    file.run((database) => {
      const oldest = `DELETE FROM entries WHERE id IN (SELECT id FROM entries WHERE outcome = 'refused' ORDER BY id LIMIT ${STEP_ENTRIES})`;
      if (statement(database, oldest).run().changes > 0) return;
      statement(
        database,
        `DELETE FROM entries WHERE id IN (SELECT id FROM entries ORDER BY id LIMIT ${STEP_ENTRIES})`,
      ).run();
    });
  }

  return {
    path,
    add(entry: AuditEntry): void {
      try {
        insert(entry);
      } catch (error) {
        if (!(error instanceof StorageError) || error.code !== "SQLITE_FULL" || !file.isAtLimit) throw error;
        makeRoom();
        insert(entry);
      }
    },
    /** The newest first. */
    find({ sinceMs, untilMs, name, operation, outcome, before, limit }: AuditFilter): (AuditEntry & { id: number })[] {
      return file.run((database) => {
        const conditions = [
          ["atMs >= ?", sinceMs],
          ["atMs < ?", untilMs],
          ["name = ?", name],
          ["operation = ?", operation],
          ["outcome = ?", outcome],
          ["id < ?", before],
        ] as const;
        const given = conditions.filter(([, value]) => value !== undefined);
        const where = given.length === 0 ? "" : `WHERE ${given.map(([sql]) => sql).join(" AND ")}`;
        const sql = `SELECT * FROM entries ${where} ORDER BY id DESC LIMIT ?`;
        const values = given.map(([, value]) => value as string | number);
        return statement<AuditEntry & { id: number }>(database, sql).all(...values, limit);
      });
    },
    forget(beforeMs: number): void {
      file.run((database) => statement(database, "DELETE FROM entries WHERE atMs < ?").run(beforeMs));
      file.shrinkStep();
    },
    set maxBytes(next: number) {
      file.maxBytes = next;
    },
    close: () => file.close(),
  };
}
