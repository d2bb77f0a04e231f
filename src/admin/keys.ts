// /admin/keys: one API key at a time, by its id; each change is a change of the section api_keys and makes one version.

import type { Change } from "../config/change/change.ts";
import type { Mapping } from "../config/values/values.ts";
import { parseDuration } from "../lib/duration.ts";
import { type DescribedEndpoint, pathParameter } from "../openapi/operation.ts";
import { createCollection } from "./collection.ts";
import { adminGroup, answer, dryRun, versioned } from "./endpoint.ts";
import { keyRecords } from "./key-record.ts";
import { KEY_SCHEMAS, KeyChange, KeyChanged, KeyList, KeyRecord, KeyRemoved, KeyRotation } from "./key-schemas.ts";
import type { AdminParts } from "./parts.ts";
import { invalidFields, shortened } from "./refusals.ts";

type KeyParts = Pick<AdminParts, "store" | "identify" | "clock">;

const LONGEST_OVERLAP_MS = 366 * 24 * 60 * 60 * 1000;

const endpoint = adminGroup("Keys", KEY_SCHEMAS);
const keyId = pathParameter("id", "Id of a key.");

export function keyRoutes(parts: KeyParts): DescribedEndpoint[] {
  const { store } = parts;
  const keys = createCollection(store, {
    noun: "key",
    place: "/admin/keys",
    idField: "id",
    fixedId: "cannot be changed: what the key owns belongs to it",
    path: ["api_keys", "keys"],
    read: readKey,
    positionOf: (id) => store.current.settings.api_keys.keys.findIndex((key) => parts.identify(key) === id),
    elsewhere: "stands in api_keys.api_keys_file; change it there.",
    shown: ({ after, list, position }) => records(parts, after, list)[position] as KeyRecord,
    shownGone: (id) => records(parts).find((record) => record.id === id) as KeyRecord,
  });
  return [
    endpoint("GET /admin/keys", {
      id: "listKeys",
      summary: "Every API key, without its secret",
      answers: [versioned(KeyList, "The keys.")],
      handle(call) {
        const rows = records(parts);
        return answer(call, { keys: rows, total: rows.length }, { version: store.current.version });
      },
    }),
    endpoint("POST /admin/keys", {
      id: "createKey",
      summary: "Add a key; without a secret one is made",
      parameters: [dryRun],
      body: {
        schema: KeyChange,
        isChecked: false,
        example: { id: "team-b", scopes: ["read", "write"], models: ["gpt-*"] },
      },
      changes: true,
      answers: [versioned(KeyChanged, "Added.", 201), versioned(KeyChanged, "What would be added.")],
      async handle(call, read) {
        const { fields, version } = keys.read(await read());
        const given = fields.key ?? undefined;
        const secret = given === undefined ? newSecret() : undefined;
        const entry = { fields: { ...fields, key: given ?? secret }, version };
        return await keys.create(call, entry, { more: shownOnce(secret) });
      },
    }),
    endpoint("GET /admin/keys/{id...}", {
      id: "getKey",
      summary: "One key",
      parameters: [keyId],
      answers: [versioned(KeyRecord, "The key.")],
      handle(call) {
        const record = records(parts).find(({ id }) => id === call.parameters.id);
        if (record === undefined) throw keys.unknown(call.parameters.id);
        return answer(call, record, { version: store.current.version });
      },
    }),
    endpoint("PUT /admin/keys/{id...}", {
      id: "updateKey",
      summary: "Change a key",
      parameters: [keyId, dryRun],
      body: { schema: KeyChange, isChecked: false, example: { enabled: false } },
      changes: true,
      answers: [versioned(KeyChanged, "Changed.")],
      handle: async (call, read) => await keys.update(call, call.parameters.id, keys.read(await read())),
    }),
    endpoint("DELETE /admin/keys/{id...}", {
      id: "deleteKey",
      summary: "Remove a key, with all that it owns",
      parameters: [keyId, dryRun],
      changes: true,
      answers: [versioned(KeyRemoved, "Removed.")],
      handle: (call) => keys.remove(call, call.parameters.id),
    }),
    endpoint("POST /admin/keys/{id...}/rotate", {
      id: "rotateKey",
      summary: "Give a key a new secret, while the old one stays valid for a time",
      parameters: [keyId, dryRun],
      body: { schema: KeyRotation, optional: true, example: { overlap: "1h" } },
      changes: true,
      answers: [versioned(KeyChanged, "The new secret is valid.")],
      async handle(call, read) {
        const { id } = call.parameters;
        const { overlap = "1h", key: given, version } = await read();
        const overlapMs = readOverlap(overlap);
        const secret = given === undefined ? newSecret() : undefined;
        const warnings: string[] = [];
        const description = `key ${shortened(id)} rotated`;
        const made = await keys.change(call, id, { version, description }, ({ previous: _, ...entry }, position) => {
          const running = store.current.settings.api_keys.keys[position];
          const nowMs = parts.clock.wallTime();
          if (entry.id === undefined) {
            warnings.push(`the key has no id: what it owns stays with the old secret, and the new one is another key`);
          }
          if (running?.previous !== undefined && running.previous.expires_at > nowMs) {
            warnings.push("the secret before this one is not valid any more");
          }
          const next = { ...entry, key: given ?? secret };
          if (overlapMs === 0 || running === undefined) return next;
          // As it is now: the variable that it came from may be set to the new one.
          const old = running.key.split("${").join("$${");
          return { ...next, previous: { key: old, expires_at: new Date(nowMs + overlapMs).toISOString() } };
        });
        return keys.answerItem(call, made, "has a new secret", { warnings, more: shownOnce(secret) });
      },
    }),
  ];
}

/** Of the configuration that runs, or of another one with its written keys. */
function records(
  { store, identify, clock }: KeyParts,
  settings = store.current.settings,
  written: readonly unknown[] = store.current.document.api_keys?.keys ?? [],
): KeyRecord[] {
  return keyRecords(settings, written, identify, clock.wallTime());
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
