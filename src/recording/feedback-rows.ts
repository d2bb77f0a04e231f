// What clients say of answers, in the index of recordings: scores in plain columns, comments sealed.

import type { Database } from "bun:sqlite";
import { statement } from "../lib/resilient-database.ts";

export const FEEDBACK_SCHEMA = `
CREATE TABLE feedback (
  request TEXT PRIMARY KEY, atMs REAL NOT NULL, keyId TEXT, userId TEXT, model TEXT NOT NULL, route TEXT, arm TEXT,
  score REAL NOT NULL, sealed BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX feedback_by_time ON feedback (atMs)`;

/** The oldest make room. */
const MOST_ROWS = 100_000;

export interface FeedbackRow {
  /** The gateway's own id of the request. */
  request: string;
  atMs: number;
  keyId: string | null;
  userId: string | null;
  model: string;
  route: string | null;
  arm: string | null;
  score: number;
  sealed: Uint8Array;
}

export interface FeedbackQuery {
  request?: string | undefined;
  key?: string | undefined;
  user?: string | undefined;
  model?: string | undefined;
  route?: string | undefined;
  arm?: string | undefined;
}

const COLUMNS = {
  request: "request",
  key: "keyId",
  user: "userId",
  model: "model",
  route: "route",
  arm: "arm",
} as const;

type Run = <Result>(work: (database: Database) => Result) => Result;

export function createFeedbackRows(run: Run) {
  return {
    /** Replaces the feedback for the same request, and returns its score. */
    put(row: FeedbackRow): number | undefined {
      return run((database) =>
        database
          .transaction(() => {
            const sql = "SELECT score FROM feedback WHERE request = ?";
            const before = statement<{ score: number }>(database, sql).get(row.request)?.score;
            statement(database, "INSERT OR REPLACE INTO feedback VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)").run(
              ...[row.request, row.atMs, row.keyId, row.userId, row.model, row.route, row.arm, row.score, row.sealed],
            );
            const old =
              "DELETE FROM feedback WHERE request IN (SELECT request FROM feedback ORDER BY atMs DESC LIMIT -1 OFFSET ?)";
            if (before === undefined) statement(database, old).run(MOST_ROWS);
            return before;
          })
          .immediate(),
      );
    },
    /** The newest first. */
    list(query: FeedbackQuery, limit: number): FeedbackRow[] {
      const { sql, values } = whereOf(query);
      return run((database) =>
        database
          .query<FeedbackRow, (string | number)[]>(
            `SELECT * FROM feedback WHERE ${sql} ORDER BY atMs DESC, request LIMIT ?`,
          )
          .all(...values, limit),
      );
    },
    remove(query: FeedbackQuery): void {
      const { sql, values } = whereOf(query);
      run((database) => database.query<unknown, string[]>(`DELETE FROM feedback WHERE ${sql}`).run(...values));
    },
    /** Of each target of a route. */
    counts: (): { route: string; arm: string; count: number; sum: number }[] =>
      run((database) =>
        statement<{ route: string; arm: string; count: number; sum: number }>(
          database,
          "SELECT route, arm, count(*) AS count, sum(score) AS sum FROM feedback WHERE arm IS NOT NULL GROUP BY route, arm",
        ).all(),
      ),
  };
}

function whereOf(query: FeedbackQuery): { sql: string; values: string[] } {
  const wanted = Object.entries(COLUMNS).flatMap(([name, column]) => {
    const value = query[name as keyof FeedbackQuery];
    return value === undefined ? [] : [{ column, value }];
  });
  return {
    sql: ["1", ...wanted.map(({ column }) => `${column} = ?`)].join(" AND "),
    values: wanted.map(({ value }) => value),
  };
}
