// Earlier Responses answers in a worker: the primary keeps them; what a request names is brought here before it is read.

import { BoundedMap } from "../lib/bounded-map.ts";
import { answerToKeep, type ResponseStore } from "../pipeline/response-store.ts";
import type { Channel } from "./channel.ts";
import type { KnownId, PrimaryDesk } from "./messages.ts";

/** What was brought is read within the same request. */
const BROUGHT = { maxEntries: 2_000, maxBytes: 32 * 1024 * 1024, ttlMs: 10_000 };
const ENTRY_BYTES = 1_024;

export function createRemoteResponses(channel: Channel<PrimaryDesk>, now: () => number): ResponseStore {
  const brought = new BoundedMap<KnownId>({ ...BROUGHT, now });
  const keyOf = (owner: string, id: string) => JSON.stringify([owner, id]);
  /** Who owns an id does not depend on who asks. */
  const owners = new BoundedMap<string>({ ...BROUGHT, now });

  /** The client may name it as soon as it has its answer. */
  const atOnce: typeof channel.tell = (name, ...given) => {
    channel.tell(name, ...given);
    channel.flush();
  };

  return {
    async bring(owner, ids) {
      for (const known of (await channel.call("known", [owner, ids])) ?? []) {
        brought.set(keyOf(owner, known.id), known, ENTRY_BYTES);
        if (known.owner !== undefined) owners.set(known.id, known.owner, known.owner.length);
      }
    },
    renew: async (owner, id) => (await channel.call("renewResponse", [owner, id])) ?? false,
    find: (owner, id) => brought.get(keyOf(owner, id))?.response,
    findItem: (owner, id) => brought.get(keyOf(owner, id))?.item,
    ownerOf: (id) => owners.get(id),
    keepItems(owner, result, context) {
      const { id, items } = answerToKeep(result, context);
      atOnce("keepResponse", owner, id, items);
    },
    keepBackend: (owner, id, name) => atOnce("keepBackend", owner, id, name),
    noteItems: (owner, ids) => atOnce("noteItems", owner, ids),
  };
}
