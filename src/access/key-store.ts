// The keys that were made through the admin API, and the only place that changes them. No edit of the configuration file, no
// rollback and no import concerns them.

import type { Database } from "bun:sqlite";
import { join } from "node:path";
import { readState, writeState } from "../config/store/state.ts";
import type { Mapping } from "../config/values/values.ts";
import type { Clock } from "../lib/clock.ts";
import { openDurableDatabase } from "../lib/durable-database.ts";
import { storageMessage } from "../lib/storage-message.ts";
import {
  cannotLookUp,
  KEY_DATABASE,
  listStoredKeys,
  NO_STORED_KEYS,
  reading,
  readStoredKeys,
  type StoredKey,
  type StoredKeys,
  secretDigest,
} from "./stored-keys.ts";

export interface KeyStore extends StoredKeys {
  /** Why keys cannot be made or changed; undefined when they can. */
  readonly problem: string | undefined;
  /** Keys that an earlier release kept in the configuration are here. */
  isMoved: boolean;
  /** These throw 503 where the database cannot be read. Ids in order; `search` is looked for in the ids of keys, users and organizations. */
  list(asked: { search?: string; after?: string; limit: number }): { keys: StoredKey[]; total: number };
  /** Those with a budget or a limit of tokens of their own, in the order of their ids. */
  listWithLimits(limit: number): { keys: StoredKey[]; total: number };
  /** How many keys name each organization. */
  membersByOrganization(): Map<string, number>;
  /** Keys that end between two times, in milliseconds since the Unix epoch; the first end first. */
  ending(afterMs: number, untilMs: number): KeyEnd[];
  /** Whether a secret belongs to a key here, or did: a revoked one is never accepted again. */
  knows(secret: string): "in use" | "revoked" | undefined;
  /** These throw what SQLite throws. */
  add(id: string, entry: Mapping, secret: string): void;
  change(id: string, entry: Mapping, secrets: SecretChange): void;
  remove(id: string): void;
  close(): void;
}

/** `secret`: a new one. The one before it ends at `previousUntilMs`; left out: at once. */
export interface SecretChange {
  secret?: string | undefined;
  previousUntilMs?: number | undefined;
  /** The secret before the last rotation ends now. */
  endsPrevious?: boolean | undefined;
}

interface KeyEnd {
  id: string;
  endsMs: number;
}

const MOST_ENDING = 1_000;

interface KeyStoreParts {
  /** server.data_dir; undefined: nothing can be kept there. */
  folder: string | undefined;
  clock: Clock;
  log: { error(fields: object, message: string): void };
}

/** The oldest make room: these are 256 random bits, unless an operator has chosen the secret. */
const MAX_REVOKED = 100_000;

const MOVED = "keys_of_configuration_moved";

const ANY = "?1 = ''";
const FOUND =
  "instr(lower(id || char(10) || ifnull(user_id, '') || char(10) || ifnull(organization_id, '')), lower(?1)) > 0";
const WITH_LIMITS = "?1 = '' AND (entry ->> '$.budget' IS NOT NULL OR entry ->> '$.token_limit' IS NOT NULL)";

/** Another process changes keys only while it takes over from this one. */
const STALE_MS = 100;

/** @param isOwner - false in a worker, which only reads, and sees each change of its primary at once */
export function openKeyStore({ folder, clock, log }: KeyStoreParts, isOwner: boolean): KeyStore {
  if (folder === undefined) return closedStore("there is no data folder that can be written, see server.data_dir");
  const path = join(folder, "keys.db");
  let sqlite: Database;
  try {
    sqlite = openDurableDatabase(path, KEY_DATABASE);
  } catch (error) {
    const problem = `${path} cannot be used: ${storageMessage(error)}`;
    log.error({ path }, `${problem}; keys that were made through the admin API are refused`);
    // Its keys are not known to be wrong: a client that is told so gives up.
    return { ...closedStore(problem), accept: () => cannotLookUp(error) };
  }
  return openStore(sqlite, clock, isOwner ? STALE_MS : 0);
}

function closedStore(problem: string): KeyStore {
  const refuse = () => {
    throw new Error(problem);
  };
  return {
    ...NO_STORED_KEYS,
    problem,
    isMoved: true,
    list: () => ({ keys: [], total: 0 }),
    listWithLimits: () => ({ keys: [], total: 0 }),
    membersByOrganization: () => new Map(),
    ending: () => [],
    knows: () => undefined,
    ...{ add: refuse, change: refuse, remove: refuse },
    close() {},
  };
}

function openStore(sqlite: Database, { now, wallTime }: Clock, staleMs: number): KeyStore {
  const digest = secretDigest(sqlite);
  const { keys, changed } = readStoredKeys({ sqlite, now, staleMs });

  function write(task: () => void): void {
    try {
      sqlite.transaction(task).immediate();
    } finally {
      changed();
    }
  }

  function put(id: string, entry: Mapping, version: number): void {
    const { user_id = null, organization_id = null, expires_at } = entry as Record<string, string | null>;
    const endsMs = expires_at ? Date.parse(expires_at) : null;
    sqlite
      .query(
        "INSERT OR REPLACE INTO keys (id, user_id, organization_id, ends_at, entry, version, changed_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
      )
      .run(id, user_id, organization_id, endsMs, JSON.stringify(entry), version, wallTime());
  }

  function putSecret(id: string, secret: string): void {
    sqlite.query("INSERT INTO secrets (digest, key, since) VALUES (?, ?, ?)").run(digest(secret), id, wallTime());
  }

  /** Those of a key, or only the ones before its last rotation. */
  function revoke(id: string, which: "all" | "previous"): void {
    const only = which === "previous" ? " AND ends_at IS NOT NULL" : "";
    sqlite.query(`UPDATE secrets SET key = NULL, since = ?2 WHERE key = ?1${only}`).run(id, wallTime());
    sqlite
      .query(
        "DELETE FROM secrets WHERE digest IN (SELECT digest FROM secrets WHERE key IS NULL ORDER BY since DESC LIMIT -1 OFFSET ?)",
      )
      .run(MAX_REVOKED);
  }

  return {
    get version() {
      return keys.version;
    },
    get isEmpty() {
      return keys.isEmpty;
    },
    accept: keys.accept,
    acceptDigest: keys.acceptDigest,
    digestOf: keys.digestOf,
    find: keys.find,
    problem: undefined,
    get isMoved() {
      return readState(sqlite, MOVED) !== undefined;
    },
    set isMoved(is: boolean) {
      if (is) writeState(sqlite, MOVED, "true");
    },
    list: ({ search = "", after = "", limit }) =>
      reading(() => listStoredKeys(sqlite, search === "" ? ANY : FOUND, [search, after, limit])),
    listWithLimits: (limit) => reading(() => listStoredKeys(sqlite, WITH_LIMITS, ["", "", limit])),
    membersByOrganization() {
      const sql = "SELECT organization_id AS id, count(*) AS keys FROM keys GROUP BY organization_id";
      const rows = reading(() => sqlite.query<{ id: string | null; keys: number }, []>(sql).all());
      return new Map(rows.map(({ id, keys }) => [id ?? "", keys]));
    },
    ending(afterMs, untilMs) {
      const sql = "SELECT id, ends_at AS endsMs FROM keys WHERE ends_at > ? AND ends_at <= ? ORDER BY ends_at LIMIT ?";
      return reading(() => sqlite.query<KeyEnd, [number, number, number]>(sql).all(afterMs, untilMs, MOST_ENDING));
    },
    knows(secret) {
      const sql = "SELECT key FROM secrets WHERE digest = ?";
      const row = reading(() => sqlite.query<{ key: string | null }, [Buffer]>(sql).get(digest(secret)));
      if (row === null) return undefined;
      return row.key === null ? "revoked" : "in use";
    },
    add: (id, entry, secret) =>
      write(() => {
        put(id, entry, 1);
        putSecret(id, secret);
      }),
    change: (id, entry, { secret, previousUntilMs, endsPrevious }) =>
      write(() => {
        put(id, entry, (keys.find(id)?.version ?? 0) + 1);
        if (secret !== undefined || endsPrevious) revoke(id, "previous");
        if (secret === undefined) return;
        if (previousUntilMs === undefined) revoke(id, "all");
        else sqlite.query("UPDATE secrets SET ends_at = ? WHERE key = ?").run(previousUntilMs, id);
        putSecret(id, secret);
      }),
    remove: (id) =>
      write(() => {
        sqlite.query("DELETE FROM keys WHERE id = ?").run(id);
        revoke(id, "all");
      }),
    close: () => sqlite.close(),
  };
}
