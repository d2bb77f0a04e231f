// The response cache in memory: least recently used goes first, bounded by count and by bytes.

import { type Linked, RecencyList } from "../lib/recency-list.ts";
import type { AnswerForm, CachedAnswer, RequestKey, ResponseCache } from "./cache.ts";
import { ModelCounters } from "./model-counters.ts";

interface MemoryCacheBounds {
  capacity: number;
  /** Bound of all entries together, their questions and an estimate of the upkeep included. */
  maxBytes: number;
}

interface MemoryCacheParts extends MemoryCacheBounds {
  /** Clock milliseconds. */
  now(): number;
  /** Of the hash of questions, random and secret: else the time of a lookup would reveal what others have asked (0040). */
  seed?: number;
}

/** A rough estimate of an entry's memory besides its body and its texts. */
const ENTRY_OVERHEAD_BYTES = 512;

interface KeptEntry extends Linked<KeptEntry> {
  question: string;
  form: AnswerForm;
  answer: CachedAnswer;
  sketch: number;
  bytes: number;
  expiresAtMs: number;
}

/** A character of a text takes one byte or two: counted as two. */
export function entryBytes({ question }: RequestKey, { model, contentType, body }: CachedAnswer): number {
  return ENTRY_OVERHEAD_BYTES + body.length + 2 * (question.length + model.length + contentType.length);
}

const SLOTS_PER_ENTRY = 16;
const MOST_SLOTS = 2 ** 20;

/** Answers without a promise. */
export function createMemoryCache({ now, seed = 0, ...bounds }: MemoryCacheParts) {
  let { capacity, maxBytes } = bounds;
  // How many entries have a sketch that leads to a slot. Where none has, the question need not be written.
  let slots = slotsFor(capacity);
  // The whole question is the key. The runtime hashes a text once, whichever of these maps it meets, and compares what
  // it finds with the text itself, so that two questions with one hash stay two.
  const byForm: Record<AnswerForm, Map<string, KeptEntry>> = {
    plain: new Map(),
    stream: new Map(),
    "stream+usage": new Map(),
  };
  const entries = new RecencyList<KeptEntry>();
  const models = new ModelCounters(0);
  const total = { bytes: 0, hits: 0, misses: 0, stores: 0, evictions: 0, expirations: 0 };

  function slotOf(sketch: number): number {
    return sketch & (slots.length - 1);
  }

  /** The oldest go until so many bytes more have room. */
  function makeRoom(entriesMore: number, bytesMore: number): void {
    for (const oldest of entries) {
      if (entries.size + entriesMore <= capacity && total.bytes + bytesMore <= maxBytes) break;
      remove(oldest);
      total.evictions++;
    }
  }

  function remove(entry: KeptEntry): void {
    entries.remove(entry);
    byForm[entry.form].delete(entry.question);
    slots[slotOf(entry.sketch)]!--;
    total.bytes -= entry.bytes;
    const counters = models.of(entry.answer.model);
    counters.entries--;
    counters.bytes -= entry.bytes;
  }

  /** The entry in the key's own form, else in the other one. */
  function find(key: RequestKey): KeptEntry | undefined {
    if (slots[slotOf(key.sketch(seed))] === 0) return undefined;
    const nowMs = now();
    const { question, form, otherForm } = key;
    return fresh(question, form, nowMs) ?? fresh(question, otherForm, nowMs);
  }

  /** The entry of a question; one that is too old is removed on the way. */
  function fresh(question: string, form: AnswerForm | undefined, nowMs: number): KeptEntry | undefined {
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
        models.of(model).misses++;
        return undefined;
      }
      entries.use(entry);
      total.hits++;
      models.of(model).hits++;
      return entry.answer;
    },

    put(key: RequestKey, answer: CachedAnswer, ttlMs: number): void {
      const { question, form } = key;
      const previous = byForm[form].get(question);
      if (previous !== undefined) remove(previous);
      const bytes = entryBytes(key, answer);
      if (bytes > maxBytes) return;
      makeRoom(1, bytes);
      // A view would keep the whole buffer behind it alive, which no bound counts.
      const { body } = answer;
      const isView = body.byteLength < body.buffer.byteLength;
      const sketch = key.sketch(seed);
      const entry: KeptEntry = {
        question,
        form,
        sketch,
        answer: isView ? { ...answer, body: new Uint8Array(body) } : answer,
        bytes,
        expiresAtMs: now() + ttlMs,
        older: undefined,
        newer: undefined,
      };
      entries.add(entry);
      byForm[form].set(question, entry);
      slots[slotOf(sketch)]!++;
      total.bytes += bytes;
      total.stores++;
      const counters = models.of(answer.model);
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

    /** Entries that fit into the new bounds stay. */
    resize(bounds: MemoryCacheBounds): void {
      ({ capacity, maxBytes } = bounds);
      makeRoom(0, 0);
      slots = slotsFor(capacity);
      for (const { sketch } of entries) slots[slotOf(sketch)]!++;
    },

    stats: () => ({
      backend: "memory" as const,
      capacity,
      maxBytes,
      entries: entries.size,
      ...total,
      models: models.list(),
    }),
  } satisfies ResponseCache & { resize(bounds: MemoryCacheBounds): void };
}

function slotsFor(capacity: number): Uint32Array {
  return new Uint32Array(Math.min(MOST_SLOTS, 2 ** Math.ceil(Math.log2(capacity * SLOTS_PER_ENTRY))));
}
