// The salt for names that are made of secrets: one per data folder, in its database, so that all processes agree.

import type { Database } from "bun:sqlite";
import { type ConfigDatabase, storageMessage } from "./database.ts";
import type { ConfigLog } from "./listeners.ts";

const STATE_KEY = "key_salt";

/** As long as the database can be written. */
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
  const select = sqlite.query<{ value: string }, [string]>("SELECT value FROM state WHERE key = ?");
  const found = select.get(STATE_KEY)?.value;
  if (found !== undefined) return found;
  // Another process may have been faster: the one that is there counts.
  sqlite.query("INSERT OR IGNORE INTO state (key, value) VALUES (?, ?)").run(STATE_KEY, randomKeySalt());
  return (select.get(STATE_KEY) as { value: string }).value;
}

function randomKeySalt(): string {
  return crypto.getRandomValues(new Uint8Array(32)).toHex();
}
