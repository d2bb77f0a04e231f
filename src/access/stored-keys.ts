// Keys that were made through the admin API, as requests look them up: in a database of the data folder that holds their
// secrets as keyed digests only. Every process reads it itself and sees a change with the next request.

import type { Database } from "bun:sqlite";
import { apiKeySchema } from "../config/sections/api-keys.ts";
import { readState, writeState } from "../config/store/state.ts";
import type { Mapping } from "../config/values/values.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { lazily } from "../lib/lazily.ts";
import { storageMessage } from "../lib/storage-message.ts";
import type { Caller } from "./caller.ts";
import { callerOf, type KeyRights } from "./key-rights.ts";

export const KEY_DATABASE = {
  version: 1,
  sql: `
  CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    user_id TEXT,
    organization_id TEXT,
    ends_at INTEGER,
    entry TEXT NOT NULL,
    version INTEGER NOT NULL,
    changed_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX ends_of_keys ON keys (ends_at) WHERE ends_at IS NOT NULL;
  CREATE TABLE secrets (
    digest BLOB PRIMARY KEY,
    key TEXT,
    ends_at INTEGER,
    since INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX secrets_of_keys ON secrets (key, ends_at);
  CREATE INDEX revoked_secrets ON secrets (since) WHERE key IS NULL;
  CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
`,
};

export interface StoredKey {
  id: string;
  /** As it was written, without secrets. */
  entry: Mapping;
  rights: KeyRights;
  /** Counts its changes, for If-Match. */
  version: number;
  /** Until when the secret before the last rotation is valid; milliseconds since the Unix epoch. */
  previousUntilMs: number | undefined;
}

export interface StoredKeys {
  /** Another number after every change of any key. */
  readonly version: number;
  readonly isEmpty: boolean;
  /** The caller with this secret; undefined for an unknown or revoked one. Throws 503 where the database cannot be read. */
  accept(secret: string): Caller | undefined;
  /** The same for a secret that was accepted before, by its digest. */
  acceptDigest(digest: Buffer): Caller | undefined;
  digestOf(secret: string): Buffer;
  /** Throws 503 where the database cannot be read. */
  find(id: string): StoredKey | undefined;
}

export const NO_STORED_KEYS: StoredKeys = {
  version: 0,
  isEmpty: true,
  accept: () => undefined,
  acceptDigest: () => undefined,
  digestOf: () => Buffer.alloc(0),
  find: () => undefined,
};

interface StoredKeyRow {
  id: string;
  entry: string;
  version: number;
  previousUntilMs: number | null;
}

/** Keys that are remembered with their callers; all are read again when one has changed. */
const MAX_REMEMBERED = 5_000;

const KEY_COLUMNS =
  "id, entry, version, (SELECT max(ends_at) FROM secrets WHERE key = keys.id AND ends_at IS NOT NULL) AS previousUntilMs";

interface KeyReading {
  sqlite: Database;
  now(): number;
  /** Changes by other processes are seen this long after they were made. */
  staleMs: number;
}

export function readStoredKeys({ sqlite, now, staleMs }: KeyReading) {
  const digest = lazily(() => secretDigest(sqlite));
  const bySecret = new Map<string, Caller>();
  const byId = new Map<string, StoredKey>();
  let isEmpty = false;
  let version = 0;
  let seen: number | undefined;
  let lookedMs = Number.NEGATIVE_INFINITY;

  function changed(): void {
    version++;
    bySecret.clear();
    byId.clear();
    isEmpty = false; // also where the next line throws
    isEmpty = sqlite.query("SELECT 1 FROM keys LIMIT 1").get() === null;
  }

  /** Forgets what another process may have changed. */
  function refresh(): void {
    if (staleMs > 0) {
      const nowMs = now();
      if (nowMs - lookedMs < staleMs) return;
      lookedMs = nowMs;
    }
    const found = dataVersion(sqlite);
    if (found === seen) return;
    seen = found;
    changed();
  }

  /** False where the database cannot be read: requests that need no key of it go on. */
  function tryRefresh(): boolean {
    try {
      refresh();
      return true;
    } catch {
      return false;
    }
  }

  function keyOf(id: string): StoredKey | undefined {
    const known = byId.get(id);
    if (known !== undefined) return known;
    const row = sqlite.query<StoredKeyRow, [string]>(`SELECT ${KEY_COLUMNS} FROM keys WHERE id = ?`).get(id);
    if (row === null) return undefined;
    if (byId.size >= MAX_REMEMBERED) byId.clear();
    const key = toStoredKey(row);
    byId.set(id, key);
    return key;
  }

  function behind(digested: Buffer): Caller | undefined {
    const sql = "SELECT key, ends_at FROM secrets WHERE digest = ? AND key IS NOT NULL";
    const row = sqlite.query<{ key: string; ends_at: number | null }, [Buffer]>(sql).get(digested);
    const key = row === null ? undefined : keyOf(row.key);
    if (row === null || key === undefined || !key.rights.enabled) return undefined;
    const ends = Math.min(row.ends_at ?? Number.POSITIVE_INFINITY, key.rights.expires_at ?? Number.POSITIVE_INFINITY);
    return { ...callerOf(key.rights, key.id), expiresAtMs: ends };
  }

  const keys: StoredKeys = {
    get version() {
      tryRefresh();
      return version;
    },
    get isEmpty() {
      return tryRefresh() && isEmpty;
    },
    accept: (secret) =>
      reading(() => {
        refresh();
        if (isEmpty) return undefined;
        const known = bySecret.get(secret);
        if (known !== undefined) return known;
        const caller = behind(digest()(secret));
        if (caller === undefined) return undefined;
        if (bySecret.size >= MAX_REMEMBERED) bySecret.clear();
        bySecret.set(secret, caller);
        return caller;
      }),
    acceptDigest: (digested) =>
      reading(() => {
        refresh();
        return behind(digested);
      }),
    digestOf: (secret) => reading(() => digest()(secret)),
    find: (id) =>
      reading(() => {
        refresh();
        return isEmpty ? undefined : keyOf(id);
      }),
  };
  return { keys, changed };
}

/** What an entry allows; the id and the secrets are columns of their own. */
export const keyRightsSchema = lazily(() => apiKeySchema.omit({ key: true, previous: true, id: true }));

function toStoredKey({ id, entry: text, version, previousUntilMs: until }: StoredKeyRow): StoredKey {
  const entry = JSON.parse(text) as Mapping;
  return { id, entry, rights: keyRightsSchema().parse(entry), version, previousUntilMs: until ?? undefined };
}

/** @param asked - what `filter` looks for (?1), the id behind which the page begins, and how many keys it has */
export function listStoredKeys(
  sqlite: Database,
  filter: string,
  asked: [search: string, after: string, limit: number],
) {
  const sql = `SELECT ${KEY_COLUMNS} FROM keys WHERE ${filter} AND id > ?2 ORDER BY id LIMIT ?3`;
  const rows = sqlite.query<StoredKeyRow, [string, string, number]>(sql).all(...asked);
  const counted = `SELECT count(*) AS total FROM keys WHERE ${filter}`;
  const { total = 0 } = sqlite.query<{ total: number }, [string]>(counted).get(asked[0]) ?? {};
  return { keys: rows.map(toStoredKey), total };
}

/** Digests are keyed by a salt of the database, so that equal secrets of two gateways do not look alike. */
export function secretDigest(sqlite: Database): (secret: string) => Buffer {
  if (readState(sqlite, SALT) === undefined) {
    writeState(sqlite, SALT, crypto.getRandomValues(new Uint8Array(32)).toHex());
  }
  const salt = Buffer.from(readState(sqlite, SALT) as string, "hex");
  return (secret) => new Bun.CryptoHasher("sha256", salt).update(secret).digest();
}

const SALT = "salt";

/** Differs after a change that another connection has made. */
function dataVersion(sqlite: Database): number {
  return sqlite.query<{ data_version: number }, []>("PRAGMA data_version").get()?.data_version ?? 0;
}

/** A key that cannot be looked up is not let in. */
export function reading<Value>(work: () => Value): Value {
  try {
    return work();
  } catch (error) {
    return cannotLookUp(error);
  }
}

export function cannotLookUp(error: unknown): never {
  throw new GatewayError(ERRORS.storageUnavailable, `API keys cannot be looked up: ${storageMessage(error)}.`);
}
