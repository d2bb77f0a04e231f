// /admin/keys: one API key at a time, by its id; each change is a change of the section api_keys and makes one version.

import { randomBytes } from "node:crypto";
import { z } from "zod";
import type { KeyIdentity } from "../access/key-identity.ts";
import type { Change } from "../config/change/change.ts";
import { mergePatch } from "../config/change/merge-patch.ts";
import { duration } from "../config/sections/fields.ts";
import { isMapping, type Mapping, valueAt } from "../config/values/values.ts";
import { ERRORS } from "../errors/catalog.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../lib/clock.ts";
import type { Call, Endpoint } from "../server/endpoint.ts";
import { changeFrame } from "./config-write.ts";
import { adminRoute, answer, authorOf, type StoreOf } from "./endpoint.ts";
import { type KeyRecord, keyRecords } from "./key-record.ts";
import { invalidFields, shortened, unwrap } from "./refusals.ts";
import {
  type BodyParts,
  baseVersionOf,
  bodyIsMissing,
  isDryRun,
  notAnObject,
  queryOf,
  readBody,
  readFields,
  readVersion,
} from "./request.ts";

export interface KeyParts extends BodyParts {
  store: StoreOf<"current" | "view" | "edit">;
  identify: KeyIdentity;
  clock: Clock;
}

export function keyRoutes(parts: KeyParts): Endpoint[] {
  return [
    adminRoute("GET", "/admin/keys", (call) => list(call, parts)),
    adminRoute("POST", "/admin/keys", (call) => create(call, parts), ["dry_run"]),
    adminRoute("GET", "/admin/keys/{id...}", (call) => read(call, parts)),
    adminRoute("PUT", "/admin/keys/{id...}", (call) => update(call, parts), ["dry_run"]),
    adminRoute("DELETE", "/admin/keys/{id...}", (call) => remove(call, parts), ["dry_run"]),
    adminRoute("POST", "/admin/keys/{id...}/rotate", (call) => rotate(call, parts), ["dry_run"]),
  ];
}

function records({ store, identify, clock }: KeyParts): KeyRecord[] {
  const { settings, document } = store.current;
  return keyRecords(settings, document.api_keys?.keys ?? [], identify, clock.wallTime());
}

function list(call: Call, parts: KeyParts): Response {
  const keys = records(parts);
  return answer(call, { keys, total: keys.length }, { version: parts.store.current.version });
}

function read(call: Call<"id">, parts: KeyParts): Response {
  const record = records(parts).find(({ id }) => id === call.parameters.id);
  if (record === undefined) throw noSuchKey(call.parameters.id);
  return answer(call, record, { version: parts.store.current.version });
}

function noSuchKey(id: string): GatewayError {
  const message = `There is no key '${shortened(id)}'; GET /admin/keys lists them.`;
  return new GatewayError(ERRORS.routeNotFound, message, { param: "id" });
}

interface ListChange {
  /** The version that it was made for, from the body. */
  version: number | undefined;
  description: string;
  /** The new list, and where the key stands in it that the caller speaks of; throws where that cannot be. */
  make(list: readonly Mapping[]): { list: Mapping[]; position: number };
}

async function changeList(call: Call, { store, identify, clock }: KeyParts, change: ListChange): Promise<MadeChange> {
  let position = -1;
  let record: KeyRecord | undefined;
  const result = await store.edit((document) => {
    const keys = valueAt(document, ["api_keys", "keys"]);
    const made = change.make(Array.isArray(keys) ? (keys as Mapping[]) : []);
    position = made.position;
    return {
      sections: { api_keys: { keys: made.list } },
      mode: "merge",
      baseVersion: baseVersionOf(call, change.version, store.current.version),
      dryRun: isDryRun(queryOf(call)),
      checked(_before, after) {
        record = keyRecords(after, made.list, identify, clock.wallTime())[position];
      },
      ...authorOf(call, "api", change.description),
    };
  });
  const own = `api_keys.keys[${position}].`;
  const done = unwrap(result, { fieldOf: (field) => (field.startsWith(own) ? field.slice(own.length) : field) });
  return { done, record };
}

interface MadeChange {
  done: Change;
  /** The key at the position of the change, as it is now. */
  record: KeyRecord | undefined;
}

/** Where the key with this id stands in the list of the configuration. */
function positionOf(id: string, list: readonly Mapping[], { store, identify }: KeyParts): number {
  const position = store.current.settings.api_keys.keys.findIndex((key) => identify(key) === id);
  if (position === -1) throw noSuchKey(id);
  if (position < list.length) return position;
  const message = `The key '${shortened(id)}' stands in api_keys.api_keys_file; change it there.`;
  throw new GatewayError(ERRORS.conflict, message, { param: "id" });
}

/** One entry in place of the one with this id. */
function changeEntry(
  call: Call,
  parts: KeyParts,
  { id, ...change }: Omit<ListChange, "make"> & { id: string; make(entry: Mapping, position: number): Mapping },
): Promise<MadeChange> {
  return changeList(call, parts, {
    ...change,
    make(list) {
      const position = positionOf(id, list, parts);
      return { position, list: list.with(position, change.make(list[position] as Mapping, position)) };
    },
  });
}

/** The fields of a key as a caller wrote them. */
async function readKey(call: Call, parts: KeyParts): Promise<{ fields: Mapping; version: number | undefined }> {
  const body = await readBody(call, parts);
  if (body === undefined) throw bodyIsMissing();
  if (!isMapping(body)) throw notAnObject();
  const { version, ...fields } = body;
  if (fields.previous !== undefined && fields.previous !== null) {
    const message = "is made by POST /admin/keys/{id}/rotate; null ends it at once";
    throw invalidFields([{ field: "previous", message }]);
  }
  return { fields, version: readVersion(version) };
}

async function create(call: Call, parts: KeyParts): Promise<Response> {
  const { fields, version } = await readKey(call, parts);
  const { id } = fields;
  const given = fields.key ?? undefined;
  const secret = given === undefined ? newSecret() : undefined;
  // Null stands for a field that is left out, as it does in a merge patch.
  const entry = mergePatch({}, { ...fields, key: given ?? secret }) as Mapping;
  const change = await changeList(call, parts, {
    version,
    description: typeof id === "string" ? `key ${shortened(id)} added` : "key added",
    make(list) {
      if (records(parts).some((other) => other.id === id)) {
        const message = `There is a key '${shortened(String(id))}' already; PUT /admin/keys/{id} changes it.`;
        throw new GatewayError(ERRORS.conflict, message, { param: "id" });
      }
      return { position: list.length, list: [...list, entry] };
    },
  });
  return answerRecord(call, { ...change, secret, what: "was added", status: 201 });
}

async function update(call: Call<"id">, parts: KeyParts): Promise<Response> {
  const { id } = call.parameters;
  const { fields, version } = await readKey(call, parts);
  if (fields.id !== undefined && fields.id !== id) {
    throw invalidFields([{ field: "id", message: "cannot be changed: what the key owns belongs to it" }]);
  }
  const change = await changeEntry(call, parts, {
    id,
    version,
    description: `key ${shortened(id)} changed`,
    make: (entry) => mergePatch(entry, fields) as Mapping,
  });
  return answerRecord(call, { ...change, what: "was changed" });
}

async function remove(call: Call<"id">, parts: KeyParts): Promise<Response> {
  const { id } = call.parameters;
  let removed: KeyRecord | undefined;
  const { done } = await changeList(call, parts, {
    version: undefined,
    description: `key ${shortened(id)} removed`,
    make(list) {
      const position = positionOf(id, list, parts);
      removed = records(parts)[position];
      return { position, list: list.toSpliced(position, 1) };
    },
  });
  const body = { ...changeFrame(call, done, `Key '${shortened(id)}' was removed`), removed_key: removed };
  return answer(call, body, { version: done.version });
}

const LONGEST_OVERLAP_MS = 366 * 24 * 60 * 60 * 1000;

const rotateRequest = z.strictObject({
  overlap: duration()
    .refine((overlapMs) => overlapMs <= LONGEST_OVERLAP_MS, "at most 366 days")
    .prefault("1h"),
  key: z.string().optional(),
  version: z.int().min(0).optional(),
});

async function rotate(call: Call<"id">, parts: KeyParts): Promise<Response> {
  const { id } = call.parameters;
  const { overlap: overlapMs, key: given, version } = await readFields(rotateRequest, call, parts);
  const secret = given === undefined ? newSecret() : undefined;
  const warnings: string[] = [];
  const change = await changeEntry(call, parts, {
    id,
    version,
    description: `key ${shortened(id)} rotated`,
    make({ previous: _, ...entry }, position) {
      const running = parts.store.current.settings.api_keys.keys[position];
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
    },
  });
  return answerRecord(call, { ...change, secret, warnings, what: "has a new secret" });
}

/** 256 bits, in characters that need no quoting anywhere. */
function newSecret(): string {
  return `sk-signalbox-${randomBytes(32).toString("base64url")}`;
}

interface Outcome extends MadeChange {
  /** What the gateway has made itself: shown now, and never again. */
  secret?: string | undefined;
  warnings?: readonly string[];
  what: string;
  status?: number;
}

function answerRecord(call: Call, outcome: Outcome): Response {
  const { done, record, secret, warnings, what, status = 200 } = outcome;
  const body = {
    ...changeFrame(call, done, `Key '${shortened(record?.id ?? "")}' ${what}`, warnings),
    key: record,
    ...(secret !== undefined && done.applied && { secret }),
  };
  return answer(call, body, { status: isDryRun(queryOf(call)) ? 200 : status, version: done.version });
}
