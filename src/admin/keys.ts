// /admin/keys: one API key at a time, by its id. New ones go into the key store; a change of a key of the configuration is a
// change of the section api_keys and makes one version.

import { entriesIn, isSameEntry } from "../access/move-keys.ts";
import type { StoredKey } from "../access/stored-keys.ts";
import type { Change } from "../config/change/change.ts";
import { variableNames } from "../config/values/expand.ts";
import type { Mapping } from "../config/values/values.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { parseDuration } from "../lib/duration.ts";
import { text } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, pathParameter, queryParameter } from "../openapi/operation.ts";
import type { Call } from "../server/endpoint.ts";
import { createCollection } from "./collection.ts";
import { adminGroup, answer, dryRun, versioned } from "./endpoint.ts";
import { keyRecords, storedKeyRecord } from "./key-record.ts";
import { KEY_SCHEMAS, KeyChange, KeyChanged, KeyList, KeyRecord, KeyRemoved, KeyRotation } from "./key-schemas.ts";
import { requireRole } from "./missing-role.ts";
import type { AdminParts } from "./parts.ts";
import { badParameter, queryOf, readNumber } from "./query.ts";
import { invalidFields, shortened } from "./refusals.ts";
import { createStoredKeyChanges } from "./stored-keys.ts";

type KeyParts = Pick<AdminParts, "store" | "keyStore" | "identify" | "clock" | "ledger" | "log" | "happenings">;

const LONGEST_OVERLAP_MS = 366 * 24 * 60 * 60 * 1000;
const MOST_LISTED = 10_000;
const LISTED = 1_000;

const endpoint = adminGroup("Keys", KEY_SCHEMAS);
const keyId = pathParameter("id", "Id of a key.");

export function keyRoutes(parts: KeyParts): DescribedEndpoint[] {
  const { store, keyStore } = parts;
  const positionOf = (id: string) =>
    store.current.settings.api_keys.keys.findIndex((key) => parts.identify(key) === id);
  const inConfiguration = createCollection(store, {
    noun: "key",
    place: "/admin/keys",
    idField: "id",
    fixedId: "cannot be changed: what the key owns belongs to it",
    path: ["api_keys", "keys"],
    read: readKey,
    positionOf,
    elsewhere: "stands in api_keys.api_keys_file; change it there.",
    shown: ({ after, list, position }) => records(parts, after, list)[position] as KeyRecord,
    shownGone: (id) => records(parts).find((record) => record.id === id) as KeyRecord,
  });
  const inStore = createStoredKeyChanges(parts);
  const read = (body: unknown) => inConfiguration.read(body);
  return [
    endpoint("GET /admin/keys", {
      id: "listKeys",
      role: "viewer",
      summary: "API keys, without their secrets: those of the configuration, then those of the key store",
      parameters: [
        queryParameter("search", "A part of the id, the user or the organization, in any letter case.", text),
        queryParameter("limit", `Keys of a page; left out: ${LISTED}.`, {
          type: "integer",
          minimum: 1,
          maximum: MOST_LISTED,
        }),
        queryParameter("cursor", "next_cursor of the page before.", { ...text, pattern: CURSOR.source }),
      ],
      answers: [versioned(KeyList, "The keys.")],
      handle: (call) => answer(call, page(parts, queryOf(call)), { version: store.current.version }),
    }),
    endpoint("POST /admin/keys", {
      id: "createKey",
      role: "operator",
      summary: "Add a key to the key store; without a secret one is made",
      parameters: [dryRun],
      body: {
        schema: KeyChange,
        isChecked: false,
        example: { id: "team-b", scopes: ["read", "write"], models: ["gpt-*"] },
      },
      changes: true,
      answers: [versioned(KeyChanged, "Added.", 201), versioned(KeyChanged, "What would be added.")],
      async handle(call, body) {
        const { fields, version } = read(await body());
        const { id, key } = fields;
        if (typeof id === "string" && (positionOf(id) !== -1 || keyStore.find(id) !== undefined)) {
          const message = `There is a key '${shortened(id)}' already; PUT /admin/keys/{id} changes it.`;
          throw new GatewayError(ERRORS.conflict, message, { param: "id" });
        }
        const made = key === undefined || key === null;
        return inStore.create(call, fields, { secret: made ? newSecret() : (key as string), made, version });
      },
    }),
    endpoint("GET /admin/keys/{id...}", {
      id: "getKey",
      role: "viewer",
      summary: "One key",
      description: "The ETag is the version of the key, or of the configuration where it stands there.",
      parameters: [keyId],
      answers: [versioned(KeyRecord, "The key.")],
      handle(call) {
        const { id } = call.parameters;
        const stored = keyStore.find(id);
        if (stored !== undefined) {
          const shown = storedKeyRecord(stored, { nowMs: parts.clock.wallTime(), ledger: parts.ledger() });
          return answer(call, shown, { version: stored.version });
        }
        const record = records(parts).find((key) => key.id === id);
        if (record === undefined) throw inConfiguration.unknown(id);
        return answer(call, record, { version: store.current.version });
      },
    }),
    endpoint("PUT /admin/keys/{id...}", {
      id: "updateKey",
      role: "operator",
      summary: "Change a key",
      parameters: [keyId, dryRun],
      body: { schema: KeyChange, isChecked: false, example: { enabled: false } },
      changes: true,
      answers: [versioned(KeyChanged, "Changed.")],
      async handle(call, body) {
        const { id } = call.parameters;
        const change = read(await body());
        const stored = keyStore.find(id);
        requireRoleFor(call, stored);
        if (stored === undefined) return await inConfiguration.update(call, id, change);
        return inStore.update(call, stored, change);
      },
    }),
    endpoint("DELETE /admin/keys/{id...}", {
      id: "deleteKey",
      role: "operator",
      summary: "Remove a key, with all that it owns",
      parameters: [keyId, dryRun],
      changes: true,
      answers: [versioned(KeyRemoved, "Removed.")],
      async handle(call) {
        const { id } = call.parameters;
        const stored = keyStore.find(id);
        requireRoleFor(call, stored);
        if (stored === undefined) return await inConfiguration.remove(call, id);
        return inStore.remove(call, stored);
      },
    }),
    endpoint("POST /admin/keys/{id...}/rotate", {
      id: "rotateKey",
      role: "operator",
      summary: "Give a key a new secret, while the old one stays valid for a time",
      description: "The warnings of a key of the configuration say what has to be changed in the file.",
      parameters: [keyId, dryRun],
      body: { schema: KeyRotation, optional: true, example: { overlap: "1h" } },
      changes: true,
      answers: [versioned(KeyChanged, "The new secret is valid.")],
      async handle(call, body) {
        const { id } = call.parameters;
        const { overlap = "1h", key: given, version } = await body();
        const overlapMs = readOverlap(overlap);
        const rotation = { secret: given ?? newSecret(), made: given === undefined, overlapMs, version };
        const stored = keyStore.find(id);
        return stored === undefined ? await rotateWritten(call, id, rotation) : inStore.rotate(call, stored, rotation);
      },
    }),
  ];

  /** A lower role must not shut the administrators out. */
  function requireRoleFor(call: Call<"id">, stored: StoredKey | undefined): void {
    const { keys } = store.current.settings.api_keys;
    const rights = stored?.rights ?? keys[positionOf(call.parameters.id)];
    if (rights?.scopes.includes("admin")) requireRole(call, "admin");
  }

  async function rotateWritten(call: Call, id: string, { secret, made: isMade, overlapMs, version }: Rotation) {
    const warnings: string[] = [];
    const description = `key ${shortened(id)} rotated`;
    const made = await inConfiguration.change(
      call,
      id,
      { version, description },
      ({ previous: _, ...entry }, position) => {
        const running = store.current.settings.api_keys.keys[position];
        const nowMs = parts.clock.wallTime();
        if (entry.id === undefined) {
          warnings.push(`the key has no id: what it owns stays with the old secret, and the new one is another key`);
        }
        if (running?.previous !== undefined && running.previous.expires_at > nowMs) {
          warnings.push("the secret before this one is not valid any more");
        }
        if (entriesIn(store.file).some((known) => isSameEntry(entry, known))) warnings.push(inFile(id, entry.key));
        const next = { ...entry, key: secret };
        if (overlapMs === 0 || running === undefined) return next;
        // As it is now: the variable that it came from may be set to the new one.
        const old = running.key.split("${").join("$${");
        return { ...next, previous: { key: old, expires_at: new Date(nowMs + overlapMs).toISOString() } };
      },
    );
    const shown = isMade ? secret : undefined;
    return inConfiguration.answerItem(call, made, "has a new secret", { warnings, more: shownOnce(shown) });
  }
}

interface Rotation {
  secret: string;
  /** By the gateway. */
  made: boolean;
  overlapMs: number;
  version?: number | undefined;
}

/** What an operator has to change so that the configuration file says what runs (decision 0070). */
function inFile(id: string, written: unknown): string {
  const variable = typeof written === "string" ? variableNames(written)[0] : undefined;
  const where = variable === undefined ? `the entry '${shortened(id)}' of api_keys.keys` : `the variable ${variable}`;
  return `the configuration file still has the old secret: give ${where} the new one`;
}

/** The place of a page: behind so many keys of the configuration, or behind an id of the key store. */
const CURSOR = /^(?:c:(\d{1,7})|s:([\s\S]{0,1000}))$/;

/** Keys of the configuration in its order, then those of the key store in the order of their ids. */
function page(parts: KeyParts, query: URLSearchParams): KeyList {
  const limit = readNumber(query, "limit", 1) ?? LISTED;
  if (limit > MOST_LISTED) throw badParameter("limit", `at most ${MOST_LISTED}`);
  const search = query.get("search") ?? "";
  const cursor = query.get("cursor");
  const place = cursor === null ? ["", "0"] : CURSOR.exec(cursor);
  if (place === null) throw badParameter("cursor", "next_cursor of the page before");
  const [, passed, after = ""] = place;
  const sought = search.toLowerCase();
  const written = records(parts).filter(({ id, user_id, organization_id }) =>
    `${id}\n${user_id ?? ""}\n${organization_id ?? ""}`.toLowerCase().includes(sought),
  );
  const start = passed === undefined ? written.length : Number(passed);
  const shown = written.slice(start, start + limit);
  const room = limit - shown.length;
  const stored = parts.keyStore.list({ search, after, limit: room + 1 });
  const of = { nowMs: parts.clock.wallTime(), ledger: parts.ledger() };
  const rows = stored.keys.slice(0, room).map((key, index) => storedKeyRecord(key, of, shown.length + index));
  const hasMoreWritten = start + shown.length < written.length;
  const hasMore = hasMoreWritten || stored.keys.length > room;
  const next = hasMoreWritten ? `c:${start + shown.length}` : `s:${rows.at(-1)?.id ?? after}`;
  return { keys: [...shown, ...rows], total: written.length + stored.total, next_cursor: hasMore ? next : null };
}

/** Of the configuration that runs, or of another one with its written keys. */
function records(
  { store, identify, clock, ledger }: KeyParts,
  settings = store.current.settings,
  written: readonly unknown[] = store.current.document.api_keys?.keys ?? [],
): KeyRecord[] {
  return keyRecords(settings, written, identify, { nowMs: clock.wallTime(), ledger: ledger() });
}

/** A secret that the gateway has made is shown in the answer to the change, and never again. */
const shownOnce = (secret: string | undefined) => (done: Change) =>
  secret !== undefined && done.applied ? { secret } : {};

function readOverlap(text: string): number {
  const overlapMs = parseDuration(text);
  if (overlapMs !== undefined && overlapMs <= LONGEST_OVERLAP_MS) return overlapMs;
  throw invalidFields([{ field: "overlap", message: "expected a duration of at most 366 days, such as 24h" }]);
}

function readKey(written: Mapping): Mapping {
  if (written.previous === undefined || written.previous === null) return written;
  const message = "is made by POST /admin/keys/{id}/rotate; null ends it at once";
  throw invalidFields([{ field: "previous", message }]);
}

/** 256 bits, in characters that need no quoting anywhere. */
function newSecret(): string {
  return `sk-signalbox-${crypto.getRandomValues(new Uint8Array(32)).toBase64({ alphabet: "base64url", omitPadding: true })}`;
}
