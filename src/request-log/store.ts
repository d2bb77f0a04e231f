// The chunks of requests in an SQLite file. Every operation either works or throws a StorageError at once.

import type { Database } from "bun:sqlite";
import { ResilientDatabase, StorageError, statement } from "../lib/resilient-database.ts";
import type { Logger } from "../logging/logger.ts";
import type { ToldRecord } from "../stats/request-record.ts";
import { Chunk, decodeSteps } from "./chunk.ts";
import { type ChunkBuilder, partsOf } from "./chunk-builder.ts";

interface RequestStoreParts {
  /** Absolute. */
  path: string;
  log: Pick<Logger, "warn">;
  /** The oldest requests make room for new ones. */
  maxBytes: number;
}

/** A chunk without its content. Times in microseconds since 1970, of the first and the last request to come. */
export interface ChunkEntry {
  id: number;
  first: number;
  last: number;
}

/**
 * `steps` stands behind `rows`: who reads the rows alone does not touch its pages. `ids`: the gateway's own ids are a text of
 * the process and a number, which grows; from the lowest to the highest.
 */
const SCHEMA = `
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, count INTEGER NOT NULL,
  rows BLOB NOT NULL, steps BLOB NOT NULL
) STRICT;
CREATE INDEX chunks_in_order ON chunks (last, id, first);
CREATE TABLE ids (
  chunk INTEGER NOT NULL, process TEXT NOT NULL, lowest INTEGER NOT NULL, highest INTEGER NOT NULL,
  PRIMARY KEY (chunk, process)
) STRICT, WITHOUT ROWID`;

/** Chunks that one step of forgetting removes before others get their turn. */
const STEP_CHUNKS = 16;
const PAGE_CHUNKS = 64;

export class RequestStore {
  readonly #file: ResilientDatabase<undefined>;
  readonly path: string;

  constructor({ path, log, maxBytes }: RequestStoreParts) {
    this.path = path;
    this.#file = new ResilientDatabase({
      ...{ path, log, maxBytes },
      name: "log of requests",
      schema: { version: 1, sql: SCHEMA },
      opened: () => undefined,
    });
  }

  set maxBytes(maxBytes: number) {
    this.#file.maxBytes = maxBytes;
  }

  /** Takes the place of the chunk with this id, where there is one. All of it or nothing. */
  put(id: number, chunk: ChunkBuilder): void {
    const bodies = { rows: chunk.rows(), steps: chunk.steps() };
    try {
      this.#file.run((database) => insert(database, id, chunk, bodies));
    } catch (error) {
      // A disk that is full is not our doing, and what we gave up others would take.
      if (!(error instanceof StorageError) || error.code !== "SQLITE_FULL" || !this.#file.isAtLimit) throw error;
      this.forgetStep(Number.MAX_SAFE_INTEGER);
      this.#file.run((database) => insert(database, id, chunk, bodies));
    }
  }

  /** Some chunks with requests that came in a time, those with the newest first, behind one of them. */
  entries(sinceUs: number, untilUs: number, behind?: ChunkEntry): ChunkEntry[] {
    return this.#file.run((database) => {
      const { last, id } = behind ?? { last: Number.MAX_SAFE_INTEGER, id: 0 };
      const sql = `SELECT id, first, last FROM chunks
        WHERE last >= ?1 AND first < ?2 AND (last, id) < (?3, ?4) ORDER BY last DESC, id DESC LIMIT ${PAGE_CHUNKS}`;
      return statement<ChunkEntry>(database, sql).all(sinceUs, untilUs, last, id);
    });
  }

  /** Undefined when it was forgotten meanwhile. */
  chunk(id: number): Chunk | undefined {
    return this.#file.run((database) => {
      const row = statement<Pick<StoredChunk, "rows">>(database, "SELECT rows FROM chunks WHERE id = ?").get(id);
      return row === null ? undefined : new Chunk(row.rows);
    });
  }

  /** Takes the gateway's own id; the record has its steps. */
  find(ownId: string): ToldRecord | undefined {
    return this.#file.run((database) => {
      const { process, number } = partsOf(ownId);
      const sql = "SELECT chunk AS id FROM ids WHERE process = ?1 AND lowest <= ?2 AND highest >= ?2";
      for (const { id } of statement<{ id: number }>(database, sql).all(process, number)) {
        const body = statement<StoredChunk>(database, "SELECT rows, steps FROM chunks WHERE id = ?").get(id);
        if (body === null) continue;
        const chunk = new Chunk(body.rows);
        const index = chunk.indexOf(ownId);
        if (index < 0) continue;
        const { outline: _, ...told } = chunk.told(index);
        return { ...told, ...decodeSteps(body.steps, chunk, index) };
      }
      return undefined;
    });
  }

  /** Removes some of the chunks whose requests all came before a moment, the oldest first. True: there are more. */
  forgetStep(beforeUs: number): boolean {
    return this.#file.run((database) => {
      const sql = `SELECT id FROM chunks WHERE last < ? ORDER BY last LIMIT ${STEP_CHUNKS}`;
      const old = statement<{ id: number }>(database, sql).all(beforeUs);
      if (old.length === 0) return false;
      database
        .transaction(() => {
          for (const { id } of old) {
            statement(database, "DELETE FROM chunks WHERE id = ?").run(id);
            statement(database, "DELETE FROM ids WHERE chunk = ?").run(id);
          }
        })
        .immediate();
      return old.length === STEP_CHUNKS;
    });
  }

  shrinkStep(): boolean {
    return this.#file.shrinkStep();
  }

  close(): void {
    this.#file.close();
  }
}

interface StoredChunk {
  rows: Uint8Array;
  steps: Uint8Array;
}

function insert(database: Database, id: number, chunk: ChunkBuilder, { rows, steps }: StoredChunk): void {
  const { firstUs, lastUs, count, ranges } = chunk;
  database
    .transaction(() => {
      const add = statement(database, "INSERT OR REPLACE INTO chunks VALUES (?, ?, ?, ?, ?, ?)");
      add.run(id, firstUs, lastUs, count, rows, steps);
      const addIds = statement(database, "INSERT OR REPLACE INTO ids VALUES (?, ?, ?, ?)");
      for (const [process, { lowest, highest }] of ranges) addIds.run(id, process, lowest, highest);
    })
    .immediate();
}
