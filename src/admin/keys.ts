// /admin/keys: one API key at a time, by its id; each change is a change of the section api_keys and makes one version.

import { z } from "zod";
import type { Change } from "../config/change/change.ts";
import { mergePatch } from "../config/change/merge-patch.ts";
import { duration } from "../config/sections/fields.ts";
import type { Mapping } from "../config/values/values.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { ref } from "../openapi/json-schema.ts";
import { type DescribedEndpoint, pathParameter } from "../openapi/operation.ts";
import type { Call } from "../server/endpoint.ts";
import { adminGroup, answer, dryRun, versioned } from "./endpoint.ts";
import {
  added,
  answerChange,
  changeEntries,
  type Entry,
  type EntryChange,
  readEntry,
  removed,
  replaced,
  type Told,
} from "./entries.ts";
import { type KeyRecord, keyRecords } from "./key-record.ts";
import { KEY_SCHEMAS } from "./key-schemas.ts";
import type { AdminParts } from "./parts.ts";
import { invalidFields, shortened } from "./refusals.ts";

type KeyParts = Pick<AdminParts, "store" | "identify" | "clock">;

const LONGEST_OVERLAP_MS = 366 * 24 * 60 * 60 * 1000;

const rotateRequest = z.strictObject({
  overlap: duration()
    .refine((overlapMs) => overlapMs <= LONGEST_OVERLAP_MS, "at most 366 days")
    .prefault("1h"),
  key: z.string().optional(),
  version: z.int().min(0).optional(),
});

const endpoint = adminGroup("Keys", KEY_SCHEMAS);
const keyId = pathParameter("id", "Id of a key.");

export function keyRoutes(parts: KeyParts): DescribedEndpoint[] {
  return [
    endpoint("GET /admin/keys", {
      id: "listKeys",
      summary: "Every API key, without its secret",
      answers: [versioned("KeyList", "The keys.")],
      handle(call) {
        const keys = records(parts);
        return answer(call, { keys, total: keys.length }, { version: parts.store.current.version });
      },
    }),
    endpoint("POST /admin/keys", {
      id: "createKey",
      summary: "Add a key; without a secret one is made",
      parameters: [dryRun],
      body: { schema: ref("KeyChange"), example: { id: "team-b", scopes: ["read", "write"], models: ["gpt-*"] } },
      changes: true,
      answers: [versioned("KeyChanged", "Added.", 201), versioned("KeyChanged", "What would be added.")],
      handle: async (call, read) => await create(call, readKey(await read()), parts),
    }),
    endpoint("GET /admin/keys/{id...}", {
      id: "getKey",
      summary: "One key",
      parameters: [keyId],
      answers: [versioned("KeyRecord", "The key.")],
      handle(call) {
        const record = records(parts).find(({ id }) => id === call.parameters.id);
        if (record === undefined) throw noSuchKey(call.parameters.id);
        return answer(call, record, { version: parts.store.current.version });
      },
    }),
    endpoint("PUT /admin/keys/{id...}", {
      id: "updateKey",
      summary: "Change a key",
      parameters: [keyId, dryRun],
      body: { schema: ref("KeyChange"), example: { enabled: false } },
      changes: true,
      answers: [versioned("KeyChanged", "Changed.")],
      handle: async (call, read) => await update(call, readKey(await read()), parts),
    }),
    endpoint("DELETE /admin/keys/{id...}", {
      id: "deleteKey",
      summary: "Remove a key, with all that it owns",
      parameters: [keyId, dryRun],
      changes: true,
      answers: [versioned("KeyRemoved", "Removed.")],
      handle: (call) => remove(call, parts),
    }),
    endpoint("POST /admin/keys/{id...}/rotate", {
      id: "rotateKey",
      summary: "Give a key a new secret, while the old one stays valid for a time",
      parameters: [keyId, dryRun],
      body: { schema: ref("KeyRotation"), fields: rotateRequest, optional: true, example: { overlap: "1h" } },
      changes: true,
      answers: [versioned("KeyChanged", "The new secret is valid.")],
      async handle(call, read) {
        const { id } = call.parameters;
        const { overlap: overlapMs, key: given, version } = await read();
        const secret = given === undefined ? newSecret() : undefined;
        const warnings: string[] = [];
        const made = await change(call, parts, {
          version,
          description: `key ${shortened(id)} rotated`,
          edit: replaced(
            (list) => positionOf(id, list, parts),
            ({ previous: _, ...entry }, position) => {
              const running = parts.store.current.settings.api_keys.keys[position];
              const nowMs = parts.clock.wallTime();
              if (entry.id === undefined) {
                warnings.push(
                  `the key has no id: what it owns stays with the old secret, and the new one is another key`,
                );
              }
              if (running?.previous !== undefined && running.previous.expires_at > nowMs) {
                warnings.push("the secret before this one is not valid any more");
              }
              const next = { ...entry, key: given ?? secret };
              if (overlapMs === 0 || running === undefined) return next;
              // As it is now: the variable that it came from may be set to the new one.
              const old = running.key.split("${").join("$${");
              return { ...next, previous: { key: old, expires_at: new Date(nowMs + overlapMs).toISOString() } };
            },
          ),
        });
        return answerRecord(call, made, { what: "has a new secret", warnings }, secret);
      },
    }),
  ];
}

function records({ store, identify, clock }: KeyParts): KeyRecord[] {
  const { settings, document } = store.current;
  return keyRecords(settings, document.api_keys?.keys ?? [], identify, clock.wallTime());
}

function noSuchKey(id: string): GatewayError {
  const message = `There is no key '${shortened(id)}'; GET /admin/keys lists them.`;
  return new GatewayError(ERRORS.routeNotFound, message, { param: "id" });
}

interface MadeChange {
  done: Change;
  /** The key at the position of the change, as it is now. */
  record: KeyRecord | undefined;
}

async function change(call: Call, parts: KeyParts, made: Omit<EntryChange, "path" | "checked">): Promise<MadeChange> {
  const { store, identify, clock } = parts;
  let record: KeyRecord | undefined;
  const done = await changeEntries(call, store, {
    ...made,
    path: ["api_keys", "keys"],
    checked(after, { list, position }) {
      if (position !== undefined) record = keyRecords(after, list, identify, clock.wallTime())[position];
    },
  });
  return { done, record };
}

/** Where the key with this id stands in the list of the configuration. */
function positionOf(id: string, list: readonly Mapping[], { store, identify }: KeyParts): number {
  const position = store.current.settings.api_keys.keys.findIndex((key) => identify(key) === id);
  if (position === -1) throw noSuchKey(id);
  if (position < list.length) return position;
  const message = `The key '${shortened(id)}' stands in api_keys.api_keys_file; change it there.`;
  throw new GatewayError(ERRORS.conflict, message, { param: "id" });
}

/** The fields of a key as a caller wrote them. */
function readKey(body: unknown): Entry {
  return readEntry(body, (written) => {
    if (written.previous === undefined || written.previous === null) return written;
    const message = "is made by POST /admin/keys/{id}/rotate; null ends it at once";
    throw invalidFields([{ field: "previous", message }]);
  });
}

async function create(call: Call, { fields, version }: Entry, parts: KeyParts): Promise<Response> {
  const { id } = fields;
  const given = fields.key ?? undefined;
  const secret = given === undefined ? newSecret() : undefined;
  // Null stands for a field that is left out, as it does in a merge patch.
  const entry = mergePatch({}, { ...fields, key: given ?? secret }) as Mapping;
  const made = await change(call, parts, {
    version,
    description: typeof id === "string" ? `key ${shortened(id)} added` : "key added",
    edit(list) {
      if (records(parts).some((other) => other.id === id)) {
        const message = `There is a key '${shortened(String(id))}' already; PUT /admin/keys/{id} changes it.`;
        throw new GatewayError(ERRORS.conflict, message, { param: "id" });
      }
      return added(entry)(list);
    },
  });
  return answerRecord(call, made, { what: "was added", status: 201 }, secret);
}

async function update(call: Call<"id">, { fields, version }: Entry, parts: KeyParts): Promise<Response> {
  const { id } = call.parameters;
  if (fields.id !== undefined && fields.id !== id) {
    throw invalidFields([{ field: "id", message: "cannot be changed: what the key owns belongs to it" }]);
  }
  const made = await change(call, parts, {
    version,
    description: `key ${shortened(id)} changed`,
    edit: replaced(
      (list) => positionOf(id, list, parts),
      (entry) => mergePatch(entry, fields) as Mapping,
    ),
  });
  return answerRecord(call, made, { what: "was changed" });
}

async function remove(call: Call<"id">, parts: KeyParts): Promise<Response> {
  const { id } = call.parameters;
  let removed_key: KeyRecord | undefined;
  const { done } = await change(call, parts, {
    version: undefined,
    description: `key ${shortened(id)} removed`,
    edit: removed((list) => {
      const position = positionOf(id, list, parts);
      removed_key = records(parts)[position];
      return position;
    }),
  });
  return answerChange(call, done, { what: `Key '${shortened(id)}' was removed` }, { removed_key });
}

/** 256 bits, in characters that need no quoting anywhere. */
function newSecret(): string {
  return `sk-signalbox-${crypto.getRandomValues(new Uint8Array(32)).toBase64({ alphabet: "base64url", omitPadding: true })}`;
}

/** `secret`: what the gateway has made itself, shown now and never again. */
function answerRecord(call: Call, { done, record }: MadeChange, told: Told, secret?: string): Response {
  return answerChange(
    call,
    done,
    { ...told, what: `Key '${shortened(record?.id ?? "")}' ${told.what}` },
    { key: record, ...(secret !== undefined && done.applied && { secret }) },
  );
}
