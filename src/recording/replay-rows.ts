// The replays in the index of recordings. A result counts for the size of its recording, and goes away with it.

import type { Database } from "bun:sqlite";
import { statement } from "../lib/resilient-database.ts";
import type { ReplayResult, ReplaySpec, ReplayStatus, ReplaySums, StoredReplay } from "./replay.ts";
import { NO_RESULTS, withResult } from "./replay-sums.ts";

/** `begun`: how often it was asked. */
export const REPLAY_SCHEMA = `
CREATE TABLE replays (
  id TEXT PRIMARY KEY, atMs REAL NOT NULL, status TEXT NOT NULL, total INTEGER NOT NULL, spec TEXT NOT NULL, sums TEXT NOT NULL
) STRICT;
CREATE TABLE replay_items (
  replay TEXT NOT NULL, position INTEGER NOT NULL, recording TEXT NOT NULL, begun INTEGER NOT NULL DEFAULT 0, sealed BLOB,
  PRIMARY KEY (replay, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX replay_items_of_recordings ON replay_items (recording)`;

/** The oldest make room. */
const MOST_REPLAYS = 200;
const ITEM_BYTES = 100;

interface StoredReplayRow extends Omit<StoredReplay, "spec" | "sums"> {
  spec: string;
  sums: string;
}

export interface ReplayItemRow {
  position: number;
  recording: string;
  begun: number;
  sealed: Uint8Array | null;
}

/** A request of a replay that has no result. */
export type OpenItemRow = Pick<ReplayItemRow, "position" | "recording">;

/** Items behind a position, as many as these and as large as that, but one at least. */
export interface ItemPage {
  behind: number;
  limit: number;
  maxBytes: number;
}

type Run = <Result>(work: (database: Database, counted: { bytes: number }) => Result) => Result;

export type ReplayRows = ReturnType<typeof createReplayRows>;

export function createReplayRows(run: Run) {
  return {
    /** Returns the ids of those that made room. */
    add({ id, atMs, spec }: Pick<StoredReplay, "id" | "atMs" | "spec">, recordings: readonly string[]): string[] {
      return run((database) =>
        database
          .transaction(() => {
            const sql = "INSERT INTO replays (id, atMs, status, total, spec, sums) VALUES (?, ?, 'running', ?, ?, ?)";
            const texts = [spec satisfies ReplaySpec, NO_RESULTS].map((value) => JSON.stringify(value));
            statement(database, sql).run(id, atMs, recordings.length, ...texts);
            const add = statement(database, "INSERT INTO replay_items (replay, position, recording) VALUES (?, ?, ?)");
            for (const [position, recording] of recordings.entries()) add.run(id, position, recording);
            const old = "SELECT id FROM replays ORDER BY atMs DESC, id LIMIT -1 OFFSET ?";
            const removed = statement<{ id: string }>(database, old).all(MOST_REPLAYS);
            for (const { id: oldest } of removed) removeReplay(database, oldest);
            return removed.map(({ id: oldest }) => oldest);
          })
          .immediate(),
      );
    },
    /** The newest first. */
    list: (): StoredReplay[] =>
      run((database) =>
        statement<StoredReplayRow>(database, "SELECT * FROM replays ORDER BY atMs DESC, id").all().map(toReplay),
      ),
    find: (id: string): StoredReplay | undefined =>
      run((database) => {
        const row = statement<StoredReplayRow>(database, "SELECT * FROM replays WHERE id = ?").get(id);
        return row === null ? undefined : toReplay(row);
      }),
    /** In the order of their positions. `isLast`: there are no more behind them. */
    items: (id: string, { behind, limit, maxBytes }: ItemPage): { rows: ReplayItemRow[]; isLast: boolean } =>
      run((database) => {
        const sql = `SELECT position, recording, begun, sealed FROM replay_items
          WHERE replay = ? AND position > ? ORDER BY position LIMIT ?`;
        const rows: ReplayItemRow[] = [];
        let bytes = 0;
        for (const row of statement<ReplayItemRow>(database, sql).iterate(id, behind, limit + 1)) {
          bytes += row.sealed?.length ?? 0;
          if (rows.length === limit || (rows.length > 0 && bytes > maxBytes)) return { rows, isLast: false };
          rows.push(row);
        }
        return { rows, isLast: true };
      }),
    /** In the order of their positions. */
    open: (id: string): OpenItemRow[] =>
      run((database) => {
        const sql =
          "SELECT position, recording FROM replay_items WHERE replay = ? AND sealed IS NULL ORDER BY position";
        return statement<OpenItemRow>(database, sql).all(id);
      }),
    /** False where it is gone. */
    begin: (id: string, position: number): boolean =>
      run((database) => {
        const sql = "UPDATE replay_items SET begun = begun + 1 WHERE replay = ? AND position = ?";
        return statement(database, sql).run(id, position).changes > 0;
      }),
    /** @param sealed - the result */
    settle(id: string, { position, recording }: OpenItemRow, sealed: Uint8Array, result: ReplayResult): void {
      run((database, counted) => {
        database
          .transaction(() => {
            const sql = "UPDATE replay_items SET sealed = ? WHERE replay = ? AND position = ?";
            const { changes } = statement(database, sql).run(sealed, id, position);
            if (changes === 0) return; // its recording was removed meanwhile
            count(database, id, result);
            const bytes = sealed.length + ITEM_BYTES;
            const grow = "UPDATE recordings SET bytes = bytes + ? WHERE id = ?";
            if (statement(database, grow).run(bytes, recording).changes > 0) counted.bytes += bytes;
          })
          .immediate();
      });
    },
    end(id: string, status: ReplayStatus): void {
      run((database) => statement(database, "UPDATE replays SET status = ? WHERE id = ?").run(status, id));
    },
    /** False where there is none. */
    remove: (id: string): boolean =>
      run((database) => database.transaction(() => removeReplay(database, id)).immediate()),
  };
}

function count(database: Database, id: string, result: ReplayResult): void {
  const row = statement<{ sums: string }>(database, "SELECT sums FROM replays WHERE id = ?").get(id);
  if (row === null) return;
  const sums = withResult(JSON.parse(row.sums) as ReplaySums, result);
  statement(database, "UPDATE replays SET sums = ? WHERE id = ?").run(JSON.stringify(sums), id);
}

function removeReplay(database: Database, id: string): boolean {
  statement(database, "DELETE FROM replay_items WHERE replay = ?").run(id);
  return statement(database, "DELETE FROM replays WHERE id = ?").run(id).changes > 0;
}

function toReplay({ spec, sums, ...row }: StoredReplayRow): StoredReplay {
  return { ...row, spec: JSON.parse(spec) as ReplaySpec, sums: JSON.parse(sums) as ReplaySums };
}
