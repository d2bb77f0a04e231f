// What earlier Responses answers leave behind for previous_response_id and item_reference: the whole conversation where
// the gateway translated; where a backend speaks the format itself, which one keeps it, and whose it is. In memory.

import type { GenerationResult } from "../generation/result.ts";
import { BoundedMap } from "../lib/bounded-map.ts";
import type { JsonObject } from "../lib/json.ts";
import type { AnswerContext } from "../protocols/protocol.ts";
import { responseId } from "../protocols/responses/sequence.ts";
import { storedItems } from "../protocols/responses/stored-items.ts";

export type KeptResponse =
  /** Input and output items of the conversation, in order. */
  | { kind: "items"; items: readonly JsonObject[] }
  /** The backend that keeps the response itself. */
  | { kind: "backend"; name: string };

type OwnResponseStore = ReturnType<typeof createResponseStore>;

/** What requests need of it. */
export interface ResponseStore extends Omit<OwnResponseStore, "keep" | "renew"> {
  renew(owner: string, id: string): boolean | Promise<boolean>;
  /** Where it belongs to another process: brings what is known of the ids here, before it is asked for them. */
  bring?(owner: string, ids: readonly string[]): Promise<void>;
}

/** Vendors keep responses for 30 days; the gateway holds what a working session may come back to. */
const TTL_MS = 24 * 60 * 60 * 1000;
const MAX_RESPONSES = 10_000;
const MAX_BYTES = 128 * 1024 * 1024;
const MAX_ITEMS = 50_000;
const MAX_NOTES = 100_000;
const BACKEND_ENTRY_BYTES = 64;

export function createResponseStore(now: () => number) {
  const responses = new BoundedMap<KeptResponse>({
    maxEntries: MAX_RESPONSES,
    maxBytes: MAX_BYTES,
    ttlMs: TTL_MS,
    now,
  });
  // Values are shared with the responses, so the limits there bound these as well, once more at most.
  const items = new BoundedMap<JsonObject>({ maxEntries: MAX_ITEMS, maxBytes: MAX_BYTES, ttlMs: TTL_MS, now });
  const owners = new BoundedMap<string>({ maxEntries: MAX_NOTES, maxBytes: MAX_BYTES, ttlMs: TTL_MS, now });

  /** The first owner stays: an id that is known is not taken over. */
  function note(owner: string, id: string): boolean {
    const isOwn = (owners.get(id) ?? owner) === owner;
    if (isOwn) owners.set(id, owner, owner.length);
    return isOwn;
  }

  function keep(owner: string, id: string, kept: readonly JsonObject[]): void {
    let totalBytes = 0;
    for (const item of kept) {
      const bytes = JSON.stringify(item).length;
      totalBytes += bytes;
      if (typeof item.id === "string") items.set(keyOf(owner, item.id), item, bytes);
    }
    responses.set(keyOf(owner, id), { kind: "items", items: kept }, totalBytes);
  }

  return {
    /**
     * What was answered is answered again under the same id: it is kept as if it were new. False where it is not known any
     * more, so that no request could continue behind it.
     */
    renew(owner: string, id: string): boolean {
      const isKnown = responses.renew(keyOf(owner, id));
      if (isKnown) owners.renew(id);
      return isKnown;
    },
    find: (owner: string, id: string) => responses.get(keyOf(owner, id)),
    findItem: (owner: string, id: string) => items.get(keyOf(owner, id)),
    keepItems(owner: string, result: GenerationResult, context: AnswerContext): void {
      const { id, items } = answerToKeep(result, context);
      keep(owner, id, items);
    },
    /** The same of items that are known already. */
    keep,
    /** An answer that a backend keeps itself. */
    keepBackend(owner: string, id: string, name: string): void {
      if (note(owner, id)) responses.set(keyOf(owner, id), { kind: "backend", name }, BACKEND_ENTRY_BYTES);
    },
    /** Items that a backend keeps itself. */
    noteItems(owner: string, ids: readonly string[]): void {
      for (const id of ids) note(owner, id);
    },
    /** Who got what a backend keeps under the id of a response or an item; undefined where that is not known any more. */
    ownerOf: (id: string) => owners.get(id),
  };
}

/** What a later request may name of an answer that the gateway has translated. */
export function answerToKeep(result: GenerationResult, context: AnswerContext) {
  return { id: responseId(result.id, context), items: storedItems(result, context) };
}

/** A caller cannot name a response of another one. */
function keyOf(owner: string, id: string): string {
  return JSON.stringify([owner, id]);
}
