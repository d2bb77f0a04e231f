// The salt for names that are made of secrets: one per data folder, in its database, so that all processes agree.

import type { Database } from "bun:sqlite";
import { randomBytes } from "node:crypto";

const STATE_KEY = "key_salt";

/** Throws where it cannot be kept. */
export function readKeySalt(sqlite: Database): string {
  const select = sqlite.query<{ value: string }, [string]>("SELECT value FROM state WHERE key = ?");
  const found = select.get(STATE_KEY)?.value;
  if (found !== undefined) return found;
  // Another process may have been faster: the one that is there counts.
  sqlite.query("INSERT OR IGNORE INTO state (key, value) VALUES (?, ?)").run(STATE_KEY, randomKeySalt());
  return (select.get(STATE_KEY) as { value: string }).value;
}

export function randomKeySalt(): string {
  return randomBytes(32).toString("hex");
}
