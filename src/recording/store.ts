// The recordings of a data folder: an SQLite file with what is known of them, the digests of their words, and, unless a bucket
// has them, their sealed bodies. One process writes it.

import type { Database } from "bun:sqlite";
import { ResilientDatabase, StorageError, statement } from "../lib/resilient-database.ts";
import type { Logger } from "../logging/logger.ts";
import { createFeedbackRows, FEEDBACK_SCHEMA } from "./feedback-rows.ts";
import { type RecordingFilter, type SqlValue, toSql } from "./filter.ts";
import type { RecordingFacts, SealedRecording } from "./recording.ts";
import { createReplayRows, REPLAY_SCHEMA, type ReplayRows } from "./replay-rows.ts";
import type { Vault } from "./vault.ts";

interface StoreParts {
  /** Absolute. */
  path: string;
  log: Pick<Logger, "warn">;
  maxBytes: number;
}

export interface StoredRecording extends RecordingFacts {
  number: number;
  /** What it takes, its words included. */
  bytes: number;
  /** A bucket has its bodies. */
  isElsewhere: boolean;
}

/** Where a page ended. */
export interface RecordingMark {
  atMs: number;
  number: number;
}

export interface RecordingPage {
  limit: number;
  behind?: RecordingMark | undefined;
}

const COLUMNS = [
  ...["id", "owner", "atMs", "keyId", "userId", "organizationId", "model", "answeredBy", "route", "arm", "backend"],
  ...["operation", "stream", "status", "outcome", "durationMs", "firstByteMs", "inputTokens", "outputTokens", "cost"],
  "dataset",
] as const;

const NUMBERS: ReadonlySet<string> = new Set([
  ...["atMs", "stream", "status", "durationMs", "firstByteMs", "inputTokens", "outputTokens", "cost"],
]);

const SCHEMA = `
CREATE TABLE recordings (
  number INTEGER PRIMARY KEY,
  ${COLUMNS.map((name) => `${name} ${NUMBERS.has(name) ? "REAL" : "TEXT"}`).join(", ")},
  bytes INTEGER NOT NULL, isElsewhere INTEGER NOT NULL, words BLOB NOT NULL, sealed BLOB
) STRICT;
CREATE UNIQUE INDEX recordings_by_id ON recordings (id);
CREATE INDEX recordings_by_time ON recordings (atMs, number);
CREATE TABLE doomed (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
${REPLAY_SCHEMA};
${FEEDBACK_SCHEMA}`;

const INSERT = `INSERT INTO recordings (${COLUMNS.join(", ")}, bytes, isElsewhere, words, sealed)
VALUES (${COLUMNS.map(() => "?").join(", ")}, ?, ?, ?, ?)`;
const SHOWN = ["number", ...COLUMNS, "bytes", "isElsewhere"].join(", ");
/** What the row and its place in the indexes take, about. */
const ROW_BYTES = 600;
/** Removed in one step, before requests have their turn. */
const STEP = 64;
/** Rows that one step of a search for words looks through. */
const SCANNED = 2_000;
const NEWEST: RecordingMark = { atMs: Number.MAX_SAFE_INTEGER, number: 0 };
/** The database itself, without any recording. */
const EMPTY_BYTES = 1024 ** 2;

export class RecordingStore {
  readonly path: string;
  readonly replays: ReplayRows;
  readonly feedback: ReturnType<typeof createFeedbackRows>;
  readonly #file: ResilientDatabase<{ bytes: number }>;
  #maxBytes: number;

  constructor({ path, log, maxBytes }: StoreParts) {
    this.path = path;
    this.#maxBytes = maxBytes;
    this.#file = new ResilientDatabase({
      ...{ path, log, maxBytes: maxBytes + EMPTY_BYTES },
      name: "index of recordings",
      schema: { version: 1, sql: SCHEMA },
      opened(database) {
        database.run("PRAGMA secure_delete = ON"); // what was deleted must not be found in the file
        const row = database.query<{ bytes: number | null }, []>("SELECT sum(bytes) AS bytes FROM recordings").get();
        return { bytes: row?.bytes ?? 0 };
      },
    });
    this.replays = createReplayRows((work) => this.#file.run(work));
    this.feedback = createFeedbackRows((work) => this.#file.run(work));
  }

  set maxBytes(maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.#file.maxBytes = maxBytes + EMPTY_BYTES;
  }

  /** Of all recordings. */
  get bytes(): number {
    return this.#file.run((_, counted) => counted.bytes);
  }

  /** All of them or none; the oldest make room. @param isElsewhere - a bucket has the bodies */
  add(recordings: readonly SealedRecording[], isElsewhere: boolean): void {
    const insertAll = (database: Database, counted: { bytes: number }) => {
      const before = counted.bytes;
      try {
        database
          .transaction(() => {
            for (const recording of recordings) this.#insert(database, counted, recording, isElsewhere);
          })
          .immediate();
      } catch (error) {
        counted.bytes = before;
        throw error;
      }
    };
    try {
      this.#file.run(insertAll);
    } catch (error) {
      // A disk that is full is not our doing, and what we gave up others would take.
      if (!(error instanceof StorageError) || error.code !== "SQLITE_FULL" || !this.#file.isAtLimit) throw error;
      this.#file.run((database, counted) => this.#removeOldest(database, counted));
      this.#file.run(insertAll);
    }
  }

  #insert(
    database: Database,
    counted: { bytes: number },
    { facts, sealed, words }: SealedRecording,
    isElsewhere: boolean,
  ): void {
    const bytes = sealed.length + words.length + ROW_BYTES;
    while (counted.bytes + bytes > this.#maxBytes && this.#removeOldest(database, counted)) {}
    const values = COLUMNS.map((name) => toValue(facts[name]));
    statement(database, INSERT).run(...values, bytes, Number(isElsewhere), words, isElsewhere ? null : sealed);
    if (isElsewhere) statement(database, "DELETE FROM doomed WHERE id = ?").run(facts.id);
    counted.bytes += bytes;
  }

  find(id: string): StoredRecording | undefined {
    return this.#file.run((database) => {
      const row = statement<RecordingRowOfFile>(database, `SELECT ${SHOWN} FROM recordings WHERE id = ?`).get(id);
      return row === null ? undefined : toRecording(row);
    });
  }

  /** The bodies of one that is not elsewhere. */
  sealed(number: number): Uint8Array | undefined {
    return this.#file.run((database) => {
      const sql = "SELECT sealed FROM recordings WHERE number = ?";
      return statement<{ sealed: Uint8Array | null }>(database, sql).get(number)?.sealed ?? undefined;
    });
  }

  /**
   * The newest first. `oldestMs`: what clients asked before is gone, whether it was removed already or not. Where words are
   * looked for, only so many rows are looked through, and `next` says where to go on.
   */
  listStep(
    filter: RecordingFilter,
    digests: Vault["wordDigests"],
    { limit, behind = NEWEST, oldestMs }: RecordingPage & { oldestMs: number },
  ): { found: StoredRecording[]; next: RecordingMark | undefined } {
    const { sql, values } = toSql(filter, digests);
    const from = [behind.atMs, behind.number];
    const rows = "FROM recordings WHERE (atMs, number) < (?, ?) ORDER BY atMs DESC, number DESC";
    return this.#file.run((database) => {
      const isScan = filter.text !== undefined;
      const end = isScan
        ? statement<RecordingMark>(database, `SELECT atMs, number ${rows} LIMIT 1 OFFSET ${SCANNED}`).get(...from)
        : null;
      const until = end === null ? [] : [end.atMs, end.number];
      const bound = end === null ? "" : "AND (atMs, number) >= (?, ?)";
      const found = database
        .query<RecordingRowOfFile, SqlValue[]>(
          `SELECT ${SHOWN} FROM recordings WHERE (atMs, number) < (?, ?) ${bound}
          AND (dataset IS NOT NULL OR atMs >= ?) AND ${sql} ORDER BY atMs DESC, number DESC LIMIT ?`,
        )
        .all(...from, ...until, oldestMs, ...values, limit)
        .map(toRecording);
      return { found, next: end ?? undefined };
    });
  }

  /** In the order of their names. */
  dataSets(): { name: string; count: number }[] {
    return this.#file.run((database) => {
      const sql =
        "SELECT dataset AS name, count(*) AS count FROM recordings WHERE dataset IS NOT NULL GROUP BY dataset";
      return statement<{ name: string; count: number }>(database, sql).all();
    });
  }

  /** Some of those that have these ids. */
  removeIds(ids: readonly string[]): void {
    const places = ids.map(() => "?").join(", ");
    this.#file.run((database, counted) => this.#remove(database, counted, `id IN (${places})`, ids, ids.length));
  }

  /** Some of those that clients asked for before a time. True: there are more. */
  forgetStep(beforeMs: number): boolean {
    const old = "atMs < ? AND dataset IS NULL";
    return this.#file.run((database, counted) => this.#remove(database, counted, old, [beforeMs], STEP)) === STEP;
  }

  /** From now on their objects are to be removed, until add() has them. */
  doom(ids: readonly string[]): void {
    this.#file.run((database) =>
      database
        .transaction(() => {
          for (const id of ids) statement(database, "INSERT OR IGNORE INTO doomed VALUES (?)").run(id);
        })
        .immediate(),
    );
  }

  doomed(limit: number): string[] {
    return this.#file.run((database) =>
      statement<{ id: string }>(database, "SELECT id FROM doomed LIMIT ?")
        .all(limit)
        .map(({ id }) => id),
    );
  }

  /** Its object is gone. */
  removed(id: string): void {
    this.#file.run((database) => statement(database, "DELETE FROM doomed WHERE id = ?").run(id));
  }

  shrinkStep(): boolean {
    return this.#file.shrinkStep();
  }

  close(): void {
    this.#file.close();
  }

  #removeOldest(database: Database, counted: { bytes: number }): boolean {
    return this.#remove(database, counted, "1", [], 1) > 0;
  }

  #remove(
    database: Database,
    counted: { bytes: number },
    sql: string,
    values: readonly (string | number)[],
    limit: number,
  ): number {
    const found = database
      .query<{ number: number; id: string; bytes: number; isElsewhere: number }, (string | number)[]>(
        `SELECT number, id, bytes, isElsewhere FROM recordings WHERE ${sql} ORDER BY atMs, number LIMIT ${limit}`,
      )
      .all(...values);
    if (found.length === 0) return 0;
    database
      .transaction(() => {
        for (const { number, id, isElsewhere } of found) {
          statement(database, "DELETE FROM replay_items WHERE recording = ?").run(id);
          statement(database, "DELETE FROM recordings WHERE number = ?").run(number);
          if (isElsewhere) statement(database, "INSERT OR IGNORE INTO doomed VALUES (?)").run(id);
        }
      })
      .immediate();
    for (const { bytes } of found) counted.bytes -= bytes;
    return found.length;
  }
}

type RecordingRowOfFile = Omit<StoredRecording, "stream" | "isElsewhere"> & { stream: number; isElsewhere: number };

function toRecording({ stream, isElsewhere, ...row }: RecordingRowOfFile): StoredRecording {
  return { ...row, stream: stream === 1, isElsewhere: isElsewhere === 1 };
}

function toValue(value: string | number | boolean | null): string | number | null {
  return typeof value === "boolean" ? Number(value) : value;
}
