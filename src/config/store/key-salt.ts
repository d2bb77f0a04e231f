// The salt for names that are made of secrets: one per data folder, in its database, so that all processes agree.

import type { Database } from "bun:sqlite";
import { storageMessage } from "../../lib/storage-message.ts";
import type { ConfigDatabase } from "./database.ts";
import type { ConfigLog } from "./listeners.ts";
import { readState } from "./state.ts";

const STATE_KEY = "key_salt";

/** Undefined while nothing was named by it. */
export const savedKeySalt = (sqlite: Database): string | undefined => readState(sqlite, STATE_KEY);

/** The salt lasts as long as the database can be written; else it is new at each start. */
export function keySalt({ sqlite, path, problem }: ConfigDatabase, log: Pick<ConfigLog, "warn">): string {
  let reason = problem;
  try {
    if (reason === undefined) return readKeySalt(sqlite);
  } catch (error) {
    reason = `${path} cannot be used: ${storageMessage(error)}`;
  }
  log.warn({ path }, `${reason}; API keys without an id have other names after the next start`);
  return randomKeySalt();
}

/** Throws where it cannot be kept. */
function readKeySalt(sqlite: Database): string {
  const found = savedKeySalt(sqlite);
  if (found !== undefined) return found;
  // Another process may have been faster: the one that is there counts.
  sqlite.query("INSERT OR IGNORE INTO state (key, value) VALUES (?, ?)").run(STATE_KEY, randomKeySalt());
  return savedKeySalt(sqlite) as string;
}

export function randomKeySalt(): string {
  return crypto.getRandomValues(new Uint8Array(32)).toHex();
}
