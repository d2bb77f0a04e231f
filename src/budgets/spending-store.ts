// What was spent, in an SQLite file. It is written as what has been added since the last time, so that two processes with one
// data folder, as while one replaces the other, lose nothing of each other. Every operation works or throws a StorageError.

import { ResilientDatabase, statement } from "../lib/resilient-database.ts";
import type { Logger } from "../logging/logger.ts";
import type { Amounts } from "./amounts.ts";
import type { Rule } from "./rules.ts";

/** What one subject of a rule has spent in one span of its window. Times in milliseconds since 1970. */
export interface SpentRow extends Amounts {
  rule: string;
  /** As the configuration writes it; another window counts from nothing. */
  window: string;
  subject: string;
  fromMs: number;
  endsMs: number;
}

const SCHEMA = `
CREATE TABLE spent (
  rule TEXT NOT NULL, window TEXT NOT NULL, subject TEXT NOT NULL, fromMs INTEGER NOT NULL, endsMs INTEGER NOT NULL,
  cost INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, requests INTEGER NOT NULL,
  PRIMARY KEY (rule, window, subject, fromMs)
) STRICT, WITHOUT ROWID;
CREATE INDEX spent_by_end ON spent (endsMs)`;

const ADD = `
INSERT INTO spent (rule, window, subject, fromMs, endsMs, cost, input, output, requests)
VALUES ($rule, $window, $subject, $fromMs, $endsMs, $cost, $input, $output, $requests)
ON CONFLICT DO UPDATE SET cost = min(cost + excluded.cost, ${Number.MAX_SAFE_INTEGER}), input = input + excluded.input,
  output = output + excluded.output, requests = requests + excluded.requests, endsMs = excluded.endsMs
RETURNING cost, input, output, requests`;

/** What other gateways have spent, as it was last told; and the id of the data folder. */
const SHARED_SCHEMA = `
CREATE TABLE IF NOT EXISTS others (
  rule TEXT NOT NULL, window TEXT NOT NULL, subject TEXT NOT NULL, fromMs INTEGER NOT NULL, endsMs INTEGER NOT NULL,
  cost INTEGER NOT NULL, input INTEGER NOT NULL, output INTEGER NOT NULL, requests INTEGER NOT NULL,
  PRIMARY KEY (rule, window, subject, fromMs)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS others_by_end ON others (endsMs);
CREATE TABLE IF NOT EXISTS folder (id TEXT NOT NULL) STRICT`;

const COPY = `
INSERT OR REPLACE INTO others (rule, window, subject, fromMs, endsMs, cost, input, output, requests)
VALUES ($rule, $window, $subject, $fromMs, $endsMs, $cost, $input, $output, $requests)`;

const ALL = "(SELECT * FROM spent UNION ALL SELECT * FROM others)";

const MAX_BYTES = 1024 ** 3;
const DAY_MS = 86_400_000;
/** How long what is over is kept, for those who ask what was spent: of days, weeks and months, and of shorter windows. */
const KEPT_MS = 400 * DAY_MS;
const SHORT_KEPT_MS = 8 * DAY_MS;
/** Rows that one step of forgetting removes, before requests get their turn. */
const STEP_ROWS = 10_000;

export type SpendingStore = ReturnType<typeof createSpendingStore>;

/** @param path - absolute */
export function createSpendingStore(path: string, log: Pick<Logger, "warn">) {
  const file = new ResilientDatabase<undefined>({
    path,
    name: "spending of budgets",
    schema: { version: 1, sql: SCHEMA },
    maxBytes: MAX_BYTES,
    log,
    opened: (database) => void database.run(SHARED_SCHEMA),
  });

  return {
    ...sharedRows(file),
    /** All or nothing. Returns what is spent in the end, in the order of the rows. */
    add: (rows: readonly SpentRow[]): Amounts[] =>
      file.run((database) => {
        const add = statement<Amounts>(database, ADD);
        return database.transaction(() => rows.map((row) => add.get({ ...row } as never) as Amounts)).immediate();
      }),
    /** What counts at this time. */
    of: (rule: string, window: string, subject: string, timeMs: number): SpentRow[] =>
      file.run((database) =>
        statement<SpentRow>(
          database,
          "SELECT * FROM spent WHERE rule = $rule AND window = $window AND subject = $subject AND endsMs > $timeMs ORDER BY fromMs",
        ).all({ rule, window, subject, timeMs }),
      ),
    /** What has counted at this time or later, of every subject, those who have spent most first. */
    since: (rule: string, window: string, timeMs: number, most: number): SpentRow[] =>
      file.run((database) =>
        statement<SpentRow>(
          database,
          `SELECT rule, window, subject, fromMs, max(endsMs) AS endsMs, sum(cost) AS cost, sum(input) AS input,
             sum(output) AS output, sum(requests) AS requests
           FROM ${ALL} WHERE rule = $rule AND window = $window AND endsMs > $timeMs
           GROUP BY subject, fromMs ORDER BY fromMs DESC, cost DESC LIMIT $most`,
        ).all({ rule, window, timeMs, most }),
      ),
    /** What counts at this time, by subject: those who have spent most first. */
    bySubject: (
      { id: rule, resetAtMs, subjectResets }: Pick<Rule, "id" | "resetAtMs" | "subjectResets">,
      window: string,
      timeMs: number,
      most: number,
    ): (Amounts & { subject: string })[] =>
      file.run((database) =>
        statement<Amounts & { subject: string }>(
          database,
          `SELECT subject, sum(cost) AS cost, sum(input) AS input, sum(output) AS output, sum(requests) AS requests
           FROM ${ALL} WHERE rule = $rule AND window = $window AND endsMs > $timeMs
             AND fromMs >= coalesce((SELECT value FROM json_each($resets) WHERE key = subject), $resetAtMs)
           GROUP BY subject ORDER BY cost DESC, input + output DESC, requests DESC LIMIT $most`,
        ).all({ rule, window, timeMs, most, resetAtMs, resets: JSON.stringify(Object.fromEntries(subjectResets)) }),
      ),
    /** Forgets some of what is long over. True: there is more. */
    forgetStep: (timeMs: number): boolean =>
      file.run((database) => {
        const counts = ["spent", "others"].map((table) => {
          const { changes } = statement(
            database,
            `DELETE FROM ${table} WHERE (rule, window, subject, fromMs) IN (
             SELECT rule, window, subject, fromMs FROM ${table}
             WHERE endsMs < $shortMs AND (endsMs < $longMs OR window NOT IN ('day', 'week', 'month'))
             ORDER BY endsMs LIMIT ${STEP_ROWS})`,
          ).run({ shortMs: timeMs - SHORT_KEPT_MS, longMs: timeMs - KEPT_MS } as never);
          return changes;
        });
        return counts.includes(STEP_ROWS);
      }),
    close: () => file.close(),
  };
}

/** What gateways with one Redis server keep beside their own. */
function sharedRows(file: ResilientDatabase<undefined>) {
  return {
    /** Of other gateways, in place of what was known. */
    copy: (rows: readonly SpentRow[]): void =>
      file.run((database) => {
        const copy = statement(database, COPY);
        const copyAll = database.transaction(() => {
          for (const row of rows) copy.run({ ...row } as never);
        });
        copyAll.immediate();
      }),
    copies: (rule: string, window: string, subject: string, timeMs: number): SpentRow[] =>
      file.run((database) =>
        statement<SpentRow>(
          database,
          "SELECT * FROM others WHERE rule = $rule AND window = $window AND subject = $subject AND endsMs > $timeMs",
        ).all({ rule, window, subject, timeMs }),
      ),
    /** The accounts that have spent something that counts at this time. */
    counting: (timeMs: number, most: number): { rule: string; subject: string }[] =>
      file.run((database) =>
        statement<{ rule: string; subject: string }>(
          database,
          "SELECT DISTINCT rule, subject FROM spent WHERE endsMs > $timeMs LIMIT $most",
        ).all({ timeMs, most }),
      ),
    /** The id of the data folder: `made` the first time. */
    folder: (made: string): string =>
      file.run((database) =>
        database
          .transaction(() => {
            const known = statement<{ id: string }>(database, "SELECT id FROM folder").get();
            if (known !== null) return known.id;
            statement(database, "INSERT INTO folder (id) VALUES ($id)").run({ id: made } as never);
            return made;
          })
          .immediate(),
      ),
  };
}
