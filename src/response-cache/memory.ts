// The response cache in memory: least recently used goes first, bounded by count and by bytes.

import type { CachedAnswer, CacheStatistics, ModelStatistics, ResponseCache } from "./cache.ts";

export interface MemoryCacheOptions {
  capacity: number;
  /** Bound of all entries together, keys and an estimate of the upkeep included. */
  maxBytes: number;
  /** Clock milliseconds. */
  now(): number;
}

/** Every answer comes at once. */
export interface MemoryCache extends ResponseCache {
  get(keys: readonly string[], model: string): CachedAnswer | undefined;
  put(key: string, answer: CachedAnswer, ttlMs: number): void;
  clear(model?: string): number;
  stats(): CacheStatistics;
}

/** Models with counters of their own: clients choose model names, so their number needs a bound. */
export const MAX_COUNTED_MODELS = 200;
export const OTHER_MODELS = "(other)";

/** What an entry costs besides its body and its texts, roughly. */
const ENTRY_OVERHEAD_BYTES = 512;

interface Entry {
  answer: CachedAnswer;
  bytes: number;
  expiresAtMs: number;
}

export function entryBytes(key: string, { model, contentType, body }: CachedAnswer): number {
  return ENTRY_OVERHEAD_BYTES + body.length + 2 * (key.length + model.length + contentType.length);
}

export function createMemoryCache({ capacity, maxBytes, now }: MemoryCacheOptions): MemoryCache {
  // A Map keeps its keys in the order of insertion: what is used is inserted anew, so that the oldest use comes first.
  const entries = new Map<string, Entry>();
  const models = new Map<string, ModelStatistics>();
  const total = { bytes: 0, hits: 0, misses: 0, stores: 0, evictions: 0, expirations: 0 };

  function countersOf(model: string): ModelStatistics {
    const own = models.get(model);
    if (own !== undefined) return own;
    const name = models.size < MAX_COUNTED_MODELS ? model : OTHER_MODELS;
    const counters = models.get(name) ?? { model: name, hits: 0, misses: 0, stores: 0, entries: 0, bytes: 0 };
    models.set(name, counters);
    return counters;
  }

  function remove(key: string, entry: Entry): void {
    entries.delete(key);
    total.bytes -= entry.bytes;
    const counters = countersOf(entry.answer.model);
    counters.entries--;
    counters.bytes -= entry.bytes;
  }

  /** The entry under a key; one that is too old is removed on the way. */
  function fresh(key: string, nowMs: number): Entry | undefined {
    const entry = entries.get(key);
    if (entry === undefined || nowMs < entry.expiresAtMs) return entry;
    remove(key, entry);
    total.expirations++;
    return undefined;
  }

  return {
    get(keys, model) {
      const nowMs = now();
      for (const key of keys) {
        const entry = fresh(key, nowMs);
        if (entry === undefined) continue;
        entries.delete(key);
        entries.set(key, entry);
        total.hits++;
        countersOf(model).hits++;
        return entry.answer;
      }
      total.misses++;
      countersOf(model).misses++;
      return undefined;
    },

    put(key, answer, ttlMs) {
      const previous = entries.get(key);
      if (previous !== undefined) remove(key, previous);
      const bytes = entryBytes(key, answer);
      if (bytes > maxBytes) return;
      for (const [oldestKey, oldest] of entries) {
        if (entries.size < capacity && total.bytes + bytes <= maxBytes) break;
        remove(oldestKey, oldest);
        total.evictions++;
      }
      // A view would keep the whole buffer behind it alive, which no bound counts.
      const { body } = answer;
      const isView = body.byteLength < body.buffer.byteLength;
      const entry: Entry = {
        answer: isView ? { ...answer, body: new Uint8Array(body) } : answer,
        bytes,
        expiresAtMs: now() + ttlMs,
      };
      entries.set(key, entry);
      total.bytes += bytes;
      total.stores++;
      const counters = countersOf(answer.model);
      counters.stores++;
      counters.entries++;
      counters.bytes += bytes;
    },

    clear(model) {
      let cleared = 0;
      for (const [key, entry] of entries) {
        if (model !== undefined && entry.answer.model !== model) continue;
        remove(key, entry);
        cleared++;
      }
      return cleared;
    },

    stats: () => ({
      backend: "memory",
      capacity,
      max_bytes: maxBytes,
      entries: entries.size,
      ...total,
      models: [...models.values()].map((counters) => ({ ...counters })),
    }),
  };
}
