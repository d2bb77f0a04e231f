// The latest entries of requests that were refused, each client in its share of the place: one that is refused again and again
// removes its own entries only, and clients without a known key remove none of those with one.

import { clientGroup } from "../access/client-address.ts";
import { FairBuffer } from "../lib/fair-buffer.ts";

interface RefusedEntry {
  readonly keyId?: string | undefined;
  readonly clientAddress?: string | undefined;
}

/** Clients whose entries are kept at once. */
const MAX_CLIENTS = 256;
/** All clients without a key that ask for what does not exist share one place. */
const SCANNERS = "(scanners)";

export class RefusedEntries<Entry extends RefusedEntry> {
  readonly #ofKeys: FairBuffer<Entry>;
  readonly #ofStrangers: FairBuffer<Entry>;

  /** @param maxEntries - of known keys, and as many of clients without one */
  constructor(maxEntries: number) {
    this.#ofKeys = new FairBuffer(maxEntries, MAX_CLIENTS);
    this.#ofStrangers = new FairBuffer(maxEntries, MAX_CLIENTS);
  }

  get size(): number {
    return this.#ofKeys.size + this.#ofStrangers.size;
  }

  /** @param leadsNowhere - it asked for a path that does not exist */
  add(entry: Entry, leadsNowhere: boolean): void {
    const { keyId, clientAddress = "" } = entry;
    if (keyId !== undefined) this.#ofKeys.add(keyId, entry);
    else this.#ofStrangers.add(leadsNowhere ? SCANNERS : clientGroup(clientAddress), entry);
  }

  /** In no order. */
  *entries(): Generator<Entry> {
    yield* this.#ofKeys.entries();
    yield* this.#ofStrangers.entries();
  }
}
