// The cache in memory against a simple model: who is kept, for how long, and what is counted.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { CachedAnswer } from "./cache.ts";
import { createMemoryCache, entryBytes, MAX_COUNTED_MODELS, OTHER_MODELS } from "./memory.ts";

function answer(bytes: number, model = "m"): CachedAnswer {
  return { form: "plain", model, contentType: "application/json", body: new Uint8Array(bytes) };
}

describe("the cache in memory", () => {
  test("keeps, counts, expires and clears", () => {
    let nowMs = 0;
    const cache = createMemoryCache({ capacity: 10, maxBytes: 100_000, now: () => nowMs });
    cache.put("a", answer(10), 100);
    cache.put("b", answer(20, "n"), 200);
    expect(cache.get(["x", "a"], "m")?.body.length).toBe(10);
    nowMs = 100;
    expect(cache.get(["a"], "m")).toBeUndefined();
    expect(cache.get(["b"], "n")?.body.length).toBe(20);
    expect(cache.stats()).toMatchObject({ entries: 1, hits: 2, misses: 1, stores: 2, expirations: 1, evictions: 0 });
    expect(cache.clear("m")).toBe(0);
    expect(cache.clear("n")).toBe(1);
    expect(cache.stats()).toMatchObject({ entries: 0, bytes: 0 });
  });

  test("does not keep the buffer behind a view alive", () => {
    const cache = createMemoryCache({ capacity: 10, maxBytes: 100_000, now: () => 0 });
    cache.put("a", { ...answer(0), body: new Uint8Array(1_000_000).subarray(5, 10) }, 100);
    expect(cache.get(["a"], "m")?.body.buffer.byteLength).toBe(5);
  });

  test("an answer larger than the whole cache replaces nothing but its own predecessor", () => {
    const cache = createMemoryCache({ capacity: 10, maxBytes: 5_000, now: () => 0 });
    cache.put("a", answer(10), 100);
    cache.put("b", answer(10), 100);
    cache.put("a", answer(10_000), 100);
    expect(cache.get(["a"], "m")).toBeUndefined();
    expect(cache.get(["b"], "m")).toBeDefined();
  });

  test("has counters for a bounded number of models", () => {
    const cache = createMemoryCache({ capacity: 10_000, maxBytes: 1e9, now: () => 0 });
    for (let index = 0; index < MAX_COUNTED_MODELS + 50; index++) cache.put(`${index}`, answer(1, `m${index}`), 100);
    const { models } = cache.stats();
    expect(models.length).toBe(MAX_COUNTED_MODELS + 1);
    expect(models.at(-1)).toMatchObject({ model: OTHER_MODELS, entries: 50 });
    cache.clear();
    expect(cache.stats().models.every(({ entries, bytes }) => entries === 0 && bytes === 0)).toBe(true);
  });

  test("behaves as a list in the order of use", () => {
    const step = fc.oneof(
      fc.record({
        kind: fc.constant("put" as const),
        key: fc.nat(12),
        size: fc.nat(3_000),
        ttl: fc.integer({ min: 1, max: 50 }),
      }),
      fc.record({ kind: fc.constant("get" as const), key: fc.nat(12), other: fc.nat(12) }),
      fc.record({ kind: fc.constant("wait" as const), ms: fc.nat(30) }),
      fc.record({ kind: fc.constant("clear" as const), model: fc.nat(2) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), fc.integer({ min: 1, max: 6 }), (steps, capacity) => {
        const maxBytes = 9_000;
        let nowMs = 0;
        const cache = createMemoryCache({ capacity, maxBytes, now: () => nowMs });
        // Oldest use first.
        let model: { key: string; model: string; bytes: number; expiresAtMs: number }[] = [];
        const used = () => model.reduce((sum, { bytes }) => sum + bytes, 0);
        for (const next of steps) {
          if (next.kind === "wait") nowMs += next.ms;
          else if (next.kind === "put") {
            const key = `k${next.key}`;
            const value = answer(next.size, `m${next.key % 3}`);
            cache.put(key, value, next.ttl);
            model = model.filter((entry) => entry.key !== key);
            const bytes = entryBytes(key, value);
            if (bytes <= maxBytes) {
              while (model.length >= capacity || used() + bytes > maxBytes) model.shift();
              model.push({ key, model: value.model, bytes, expiresAtMs: nowMs + next.ttl });
            }
          } else if (next.kind === "clear") {
            cache.clear(`m${next.model}`);
            model = model.filter((entry) => entry.model !== `m${next.model}`);
          } else {
            const keys = [`k${next.key}`, `k${next.other}`];
            let found: (typeof model)[number] | undefined;
            for (const key of keys) {
              const entry = model.find((candidate) => candidate.key === key);
              if (entry === undefined) continue;
              model.splice(model.indexOf(entry), 1);
              if (nowMs >= entry.expiresAtMs) continue;
              model.push(entry);
              found = entry;
              break;
            }
            expect(cache.get(keys, "m0") !== undefined).toBe(found !== undefined);
          }
          const stats = cache.stats();
          expect({ entries: stats.entries, bytes: stats.bytes }).toEqual({ entries: model.length, bytes: used() });
          expect(stats.bytes).toBeLessThanOrEqual(maxBytes);
          expect(stats.models.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(stats.bytes);
        }
      }),
      { numRuns: 300 },
    );
  });
});
