// The replays in the index of recordings. A result counts for the size of its recording, and goes away with it.

import type { Database } from "bun:sqlite";
import { statement } from "../lib/resilient-database.ts";
import type { ReplaySpec, ReplayStatus, StoredReplay } from "./replay.ts";

export const REPLAY_SCHEMA = `
CREATE TABLE replays (
  id TEXT PRIMARY KEY, atMs REAL NOT NULL, status TEXT NOT NULL, total INTEGER NOT NULL, spec TEXT NOT NULL
) STRICT;
CREATE TABLE replay_items (
  replay TEXT NOT NULL, position INTEGER NOT NULL, recording TEXT NOT NULL, sealed BLOB, PRIMARY KEY (replay, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX replay_items_of_recordings ON replay_items (recording)`;

/** The oldest make room. */
const MOST_REPLAYS = 200;
const ITEM_BYTES = 100;

interface StoredReplayRow extends Omit<StoredReplay, "spec"> {
  spec: string;
}

export interface ReplayItemRow {
  position: number;
  recording: string;
  sealed: Uint8Array | null;
}

type Run = <Result>(work: (database: Database, counted: { bytes: number }) => Result) => Result;

export type ReplayRows = ReturnType<typeof createReplayRows>;

export function createReplayRows(run: Run) {
  return {
    add({ id, atMs, spec }: Pick<StoredReplay, "id" | "atMs" | "spec">, recordings: readonly string[]): void {
      run((database) => {
        database
          .transaction(() => {
            const sql = "INSERT INTO replays (id, atMs, status, total, spec) VALUES (?, ?, 'running', ?, ?)";
            statement(database, sql).run(id, atMs, recordings.length, JSON.stringify(spec satisfies ReplaySpec));
            const add = statement(database, "INSERT INTO replay_items (replay, position, recording) VALUES (?, ?, ?)");
            for (const [position, recording] of recordings.entries()) add.run(id, position, recording);
            const old = "SELECT id FROM replays ORDER BY atMs DESC, id LIMIT -1 OFFSET ?";
            for (const { id: oldest } of statement<{ id: string }>(database, old).all(MOST_REPLAYS)) {
              removeReplay(database, oldest);
            }
          })
          .immediate();
      });
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
    items: (id: string): ReplayItemRow[] =>
      run((database) => {
        const sql = "SELECT position, recording, sealed FROM replay_items WHERE replay = ? ORDER BY position";
        return statement<ReplayItemRow>(database, sql).all(id);
      }),
    settle(id: string, { position, recording, sealed }: ReplayItemRow): void {
      run((database, counted) => {
        database
          .transaction(() => {
            const sql = "UPDATE replay_items SET sealed = ? WHERE replay = ? AND position = ?";
            const { changes } = statement(database, sql).run(sealed, id, position);
            if (changes === 0) return; // its recording was removed meanwhile
            const bytes = (sealed?.length ?? 0) + ITEM_BYTES;
            const grown = statement(database, "UPDATE recordings SET bytes = bytes + ? WHERE id = ?").run(
              bytes,
              recording,
            );
            if (grown.changes > 0) counted.bytes += bytes;
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
    /** Those that another process has begun, and did not end. */
    interrupt(): void {
      run((database) =>
        statement(database, "UPDATE replays SET status = 'interrupted' WHERE status = 'running'").run(),
      );
    },
  };
}

function removeReplay(database: Database, id: string): boolean {
  statement(database, "DELETE FROM replay_items WHERE replay = ?").run(id);
  return statement(database, "DELETE FROM replays WHERE id = ?").run(id).changes > 0;
}

function toReplay({ spec, ...row }: StoredReplayRow): StoredReplay {
  return { ...row, spec: JSON.parse(spec) as ReplaySpec };
}
