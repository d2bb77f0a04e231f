// The response cache in memory: least recently used goes first, bounded by count and by bytes.

import { type Linked, RecencyList } from "../lib/recency-list.ts";
import type { AnswerForm, CachedAnswer, CacheStatistics, ModelStatistics, RequestKey, ResponseCache } from "./cache.ts";

interface MemoryCacheParts {
  capacity: number;
  /** Bound of all entries together, their questions and an estimate of the upkeep included. */
  maxBytes: number;
  /** Clock milliseconds. */
  now(): number;
  /** A secret whole number: of the time that a miss takes nobody learns what others have asked (0040). */
  seed?: number;
}

/** Models with counters of their own: clients choose model names, so their number needs a bound. */
export const MAX_COUNTED_MODELS = 200;
export const OTHER_MODELS = "(other)";

/** What an entry costs besides its body and its texts, roughly. */
const ENTRY_OVERHEAD_BYTES = 512;

interface Entry extends Linked<Entry> {
  question: string;
  form: AnswerForm;
  answer: CachedAnswer;
  slot: number;
  bytes: number;
  expiresAtMs: number;
}

/** A character of a text takes one byte or two: counted as two. */
export function entryBytes({ question }: RequestKey, { model, contentType, body }: CachedAnswer): number {
  return ENTRY_OVERHEAD_BYTES + body.length + 2 * (question.length + model.length + contentType.length);
}

const SLOTS_PER_ENTRY = 16;
const MOST_SLOTS = 2 ** 20;

/** Every answer comes at once. */
export function createMemoryCache({ capacity, maxBytes, now, seed = 0 }: MemoryCacheParts) {
  // How many entries have a sketch that leads to a slot. Where none has, nobody need write the question.
  const slots = new Uint32Array(Math.min(MOST_SLOTS, 2 ** Math.ceil(Math.log2(capacity * SLOTS_PER_ENTRY))));
  // The whole question is the key. The runtime hashes a text once, whichever of these maps it meets, and compares what
  // it finds with the text itself, so that two questions with one hash stay two.
  const byForm: Record<AnswerForm, Map<string, Entry>> = {
    plain: new Map(),
    stream: new Map(),
    "stream+usage": new Map(),
  };
  const entries = new RecencyList<Entry>();
  const models = new Map<string, ModelStatistics>();
  const total = { bytes: 0, hits: 0, misses: 0, stores: 0, evictions: 0, expirations: 0 };

  function slotOf(key: RequestKey): number {
    return key.sketch(seed) & (slots.length - 1);
  }

  function countersOf(model: string): ModelStatistics {
    const own = models.get(model);
    if (own !== undefined) return own;
    const name = models.size < MAX_COUNTED_MODELS ? model : OTHER_MODELS;
    const counters = models.get(name) ?? { model: name, hits: 0, misses: 0, stores: 0, entries: 0, bytes: 0 };
    models.set(name, counters);
    return counters;
  }

  function remove(entry: Entry): void {
    entries.remove(entry);
    byForm[entry.form].delete(entry.question);
    slots[entry.slot]!--;
    total.bytes -= entry.bytes;
    const counters = countersOf(entry.answer.model);
    counters.entries--;
    counters.bytes -= entry.bytes;
  }

  /** The entry in the key's own form, else in the other one. */
  function find(key: RequestKey): Entry | undefined {
    if (slots[slotOf(key)] === 0) return undefined;
    const nowMs = now();
    const { question, form, otherForm } = key;
    return fresh(question, form, nowMs) ?? fresh(question, otherForm, nowMs);
  }

  /** The entry of a question; one that is too old is removed on the way. */
  function fresh(question: string, form: AnswerForm | undefined, nowMs: number): Entry | undefined {
    const entry = form && byForm[form].get(question);
    if (entry === undefined || nowMs < entry.expiresAtMs) return entry;
    remove(entry);
    total.expirations++;
    return undefined;
  }

  return {
    get(key: RequestKey, model: string): CachedAnswer | undefined {
      const entry = find(key);
      if (entry === undefined) {
        total.misses++;
        countersOf(model).misses++;
        return undefined;
      }
      entries.use(entry);
      total.hits++;
      countersOf(model).hits++;
      return entry.answer;
    },

    put(key: RequestKey, answer: CachedAnswer, ttlMs: number): void {
      const { question, form } = key;
      const previous = byForm[form].get(question);
      if (previous !== undefined) remove(previous);
      const bytes = entryBytes(key, answer);
      if (bytes > maxBytes) return;
      for (const oldest of entries) {
        if (entries.size < capacity && total.bytes + bytes <= maxBytes) break;
        remove(oldest);
        total.evictions++;
      }
      // A view would keep the whole buffer behind it alive, which no bound counts.
      const { body } = answer;
      const isView = body.byteLength < body.buffer.byteLength;
      const slot = slotOf(key);
      const entry: Entry = {
        question,
        form,
        slot,
        answer: isView ? { ...answer, body: new Uint8Array(body) } : answer,
        bytes,
        expiresAtMs: now() + ttlMs,
        older: undefined,
        newer: undefined,
      };
      entries.add(entry);
      byForm[form].set(question, entry);
      slots[slot]!++;
      total.bytes += bytes;
      total.stores++;
      const counters = countersOf(answer.model);
      counters.stores++;
      counters.entries++;
      counters.bytes += bytes;
    },

    clear(model?: string) {
      let cleared = 0;
      for (const entry of entries) {
        if (model !== undefined && entry.answer.model !== model) continue;
        remove(entry);
        cleared++;
      }
      return cleared;
    },

    stats: (): CacheStatistics => ({
      backend: "memory",
      capacity,
      max_bytes: maxBytes,
      entries: entries.size,
      ...total,
      models: [...models.values()].map((counters) => ({ ...counters })),
    }),
  } satisfies ResponseCache;
}
