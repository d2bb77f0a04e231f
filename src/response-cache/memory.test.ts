// The cache in memory against a simple model: who is kept, for how long, and what is counted.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { AnswerForm, CachedAnswer, RequestKey } from "./cache.ts";
import { createMemoryCache, entryBytes } from "./memory.ts";
import { MAX_COUNTED_MODELS, OTHER_MODELS } from "./model-counters.ts";

function answer(bytes: number, model = "m"): CachedAnswer {
  return { form: "plain", model, contentType: "application/json", body: new Uint8Array(bytes) };
}

/** What requests look for. */
const WANTED: readonly Pick<RequestKey, "form" | "otherForm">[] = [
  { form: "plain", otherForm: "stream+usage" },
  { form: "stream", otherForm: "plain" },
  { form: "stream+usage", otherForm: "plain" },
  { form: "stream", otherForm: undefined },
];

function ask(question: string, form: AnswerForm = "plain", otherForm?: AnswerForm): RequestKey {
  return { question, form, otherForm, sketch: (seed) => seed + question.charCodeAt(1) };
}

describe("the cache in memory", () => {
  test("keeps, counts, expires and clears", () => {
    let nowMs = 0;
    const cache = createMemoryCache({ capacity: 10, maxBytes: 100_000, now: () => nowMs });
    cache.put(ask("a"), answer(10), 100);
    cache.put(ask("b"), answer(20, "n"), 200);
    expect(cache.get(ask("a", "stream+usage", "plain"), "m")?.body.length).toBe(10);
    nowMs = 100;
    expect(cache.get(ask("a"), "m")).toBeUndefined();
    expect(cache.get(ask("b"), "n")?.body.length).toBe(20);
    expect(cache.stats()).toMatchObject({ entries: 1, hits: 2, misses: 1, stores: 2, expirations: 1, evictions: 0 });
    expect(cache.clear("m")).toBe(0);
    expect(cache.clear("n")).toBe(1);
    expect(cache.stats()).toMatchObject({ entries: 0, bytes: 0 });
  });

  test("does not keep the buffer behind a view alive", () => {
    const cache = createMemoryCache({ capacity: 10, maxBytes: 100_000, now: () => 0 });
    cache.put(ask("a"), { ...answer(0), body: new Uint8Array(1_000_000).subarray(5, 10) }, 100);
    expect(cache.get(ask("a"), "m")?.body.buffer.byteLength).toBe(5);
  });

  test("an answer larger than the whole cache replaces nothing but its own predecessor", () => {
    const cache = createMemoryCache({ capacity: 10, maxBytes: 5_000, now: () => 0 });
    cache.put(ask("a"), answer(10), 100);
    cache.put(ask("b"), answer(10), 100);
    cache.put(ask("a"), answer(10_000), 100);
    expect(cache.get(ask("a"), "m")).toBeUndefined();
    expect(cache.get(ask("b"), "m")).toBeDefined();
  });

  test("has counters for a bounded number of models", () => {
    const cache = createMemoryCache({ capacity: 10_000, maxBytes: 1e9, now: () => 0 });
    for (let index = 0; index < MAX_COUNTED_MODELS + 50; index++)
      cache.put(ask(`${index}`), answer(1, `m${index}`), 100);
    const { models } = cache.stats();
    expect(models.length).toBe(MAX_COUNTED_MODELS + 1);
    expect(models.at(-1)).toMatchObject({ model: OTHER_MODELS, entries: 50 });
    cache.clear();
    expect(cache.stats().models.every(({ entries, bytes }) => entries === 0 && bytes === 0)).toBe(true);
  });

  test("questions are told apart by their whole text, and each form has a place of its own", () => {
    const cache = createMemoryCache({ capacity: 10, maxBytes: 1e6, now: () => 0 });
    const long = "x".repeat(100_000);
    cache.put(ask(`${long}1`), answer(1), 100);
    cache.put(ask(`${long}1`, "stream"), answer(2), 100);
    expect(cache.get(ask(`${long}2`), "m")).toBeUndefined();
    expect(cache.get(ask(long), "m")).toBeUndefined();
    expect(cache.get(ask(`${long}1`, "stream+usage", "plain"), "m")?.body.length).toBe(1);
    expect(cache.get(ask(`${long}1`, "stream", "plain"), "m")?.body.length).toBe(2);
    expect(cache.get(ask(`${long}1`, "stream+usage"), "m")).toBeUndefined();
    expect(cache.stats()).toMatchObject({ entries: 2, hits: 2, misses: 3 });
  });

  test("texts that the runtime gives one hash are two questions", () => {
    // Its hashes have 24 bits: of so many texts, about a hundred pairs share one.
    const texts = 60_000;
    const cache = createMemoryCache({ capacity: texts, maxBytes: 1e9, now: () => 0 });
    for (let index = 0; index < texts; index++) cache.put(ask(`q${index}`), answer(1, `m${index}`), 100);
    let wrong = 0;
    for (let index = 0; index < texts; index++) if (cache.get(ask(`q${index}`), "m")?.model !== `m${index}`) wrong++;
    for (let index = 0; index < texts; index++) if (cache.get(ask(`r${index}`), "m") !== undefined) wrong++;
    expect(wrong).toBe(0);
  });

  test("counts the question with every answer, and lets it go with it", () => {
    const question = "x".repeat(1_000);
    const cache = createMemoryCache({ capacity: 10, maxBytes: 9_000, now: () => 0 });
    for (const form of ["plain", "stream", "stream+usage"] as const) cache.put(ask(question, form), answer(100), 100);
    const each = entryBytes(ask(question), answer(100));
    expect(each).toBeGreaterThan(2 * 1_000 + 100);
    expect(cache.stats()).toMatchObject({ entries: 3, bytes: 3 * each });
    cache.put(ask("short"), answer(2_000), 100);
    expect(cache.stats()).toMatchObject({ entries: 3, evictions: 1 });
    expect(cache.get(ask(question), "m")).toBeUndefined();
    cache.put(ask("x".repeat(5_000)), answer(0), 100);
    expect(cache.stats()).toMatchObject({ stores: 4 });
    cache.clear();
    expect(cache.stats()).toMatchObject({ entries: 0, bytes: 0 });
  });

  test("a question is written only where an entry has its sketch", () => {
    const cache = createMemoryCache({ capacity: 10, maxBytes: 9_000, now: () => 0, seed: 5 });
    let written = 0;
    const asked = (sketch: number): RequestKey => ({
      ...ask("asked"),
      get question() {
        written++;
        return "asked";
      },
      sketch: (seed) => seed + sketch,
    });
    expect(cache.get(asked(1), "m")).toBeUndefined();
    expect(written).toBe(0);
    cache.put({ ...ask("kept"), sketch: (seed) => seed + 1 }, answer(10), 100);
    expect([cache.get(asked(1), "m"), cache.get(asked(2), "m")]).toEqual([undefined, undefined]);
    expect(written).toBe(1);
    cache.clear();
    expect(cache.get(asked(1), "m")).toBeUndefined();
    expect(written).toBe(1);
    expect(cache.stats()).toMatchObject({ misses: 4 });
  });

  test("behaves as a list in the order of use", () => {
    // Some share a sketch with others.
    const questionOf = (index: number) => `k${index % 3}${index}`;
    const step = fc.oneof(
      fc.record({
        kind: fc.constant("put" as const),
        question: fc.nat(6),
        form: fc.constantFrom<AnswerForm>("plain", "stream", "stream+usage"),
        size: fc.nat(3_000),
        ttl: fc.integer({ min: 1, max: 50 }),
      }),
      fc.record({ kind: fc.constant("get" as const), question: fc.nat(6), key: fc.constantFrom(...WANTED) }),
      fc.record({ kind: fc.constant("wait" as const), ms: fc.nat(30) }),
      fc.record({ kind: fc.constant("clear" as const), model: fc.nat(2) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), fc.integer({ min: 1, max: 6 }), (steps, capacity) => {
        const maxBytes = 9_000;
        let nowMs = 0;
        const cache = createMemoryCache({ capacity, maxBytes, now: () => nowMs });
        // Oldest use first.
        let model: { question: string; form: AnswerForm; model: string; bytes: number; expiresAtMs: number }[] = [];
        const used = () => model.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0);
        for (const next of steps) {
          if (next.kind === "wait") nowMs += next.ms;
          else if (next.kind === "put") {
            const key = ask(questionOf(next.question), next.form);
            const value = answer(next.size, `m${next.question % 3}`);
            cache.put(key, value, next.ttl);
            model = model.filter(({ question, form }) => question !== key.question || form !== key.form);
            const bytes = entryBytes(key, value);
            if (bytes <= maxBytes) {
              while (model.length >= capacity || used() + bytes > maxBytes) model.shift();
              model.push({ ...key, model: value.model, bytes, expiresAtMs: nowMs + next.ttl });
            }
          } else if (next.kind === "clear") {
            cache.clear(`m${next.model}`);
            model = model.filter((entry) => entry.model !== `m${next.model}`);
          } else {
            const key = ask(questionOf(next.question), next.key.form, next.key.otherForm);
            let found: (typeof model)[number] | undefined;
            for (const form of [key.form, key.otherForm]) {
              const entry = model.find((kept) => kept.question === key.question && kept.form === form);
              if (entry === undefined) continue;
              model.splice(model.indexOf(entry), 1);
              if (nowMs >= entry.expiresAtMs) continue;
              model.push(entry);
              found = entry;
              break;
            }
            expect(cache.get(key, "m0") !== undefined).toBe(found !== undefined);
          }
          const stats = cache.stats();
          expect({ entries: stats.entries, bytes: stats.bytes }).toEqual({ entries: model.length, bytes: used() });
          expect(stats.bytes).toBeLessThanOrEqual(maxBytes);
          expect(stats.models.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0)).toBe(stats.bytes);
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe("new bounds", () => {
  const key = (question: string): RequestKey => ({
    question,
    form: "plain",
    otherForm: undefined,
    sketch: () => Bun.hash.xxHash32(question),
  });
  const answer = { form: "plain" as const, model: "m", contentType: "text/plain", body: new Uint8Array(10) };

  test.each([1, 2, 100, 100_000])("what has room under a capacity of %p stays, the latest first", (capacity) => {
    const cache = createMemoryCache({ capacity: 20, maxBytes: 1_000_000, now: () => 0 });
    const questions = Array.from({ length: 20 }, (_, index) => `q${index}`);
    for (const question of questions) cache.put(key(question), answer, 1_000);
    cache.resize({ capacity, maxBytes: 1_000_000 });
    const kept = Math.min(20, capacity);
    expect(cache.stats()).toMatchObject({ capacity, entries: kept, evictions: 20 - kept, stores: 20 });
    const found = questions.filter((question) => cache.get(key(question), "m") !== undefined);
    expect(found).toEqual(questions.slice(20 - kept));
    // The places of what has gone are free, and those of what comes are counted.
    for (const question of questions) cache.put(key(question), answer, 1_000);
    expect(questions.filter((question) => cache.get(key(question), "m") !== undefined)).toHaveLength(kept);
    expect(cache.clear()).toBe(kept);
    expect(cache.stats().bytes).toBe(0);
  });

  test("fewer bytes push the oldest out", () => {
    const cache = createMemoryCache({ capacity: 20, maxBytes: 1_000_000, now: () => 0 });
    for (const question of ["a", "b", "c"]) cache.put(key(question), answer, 1_000);
    cache.resize({ capacity: 20, maxBytes: entryBytes(key("a"), answer) });
    expect(["a", "b", "c"].filter((question) => cache.get(key(question), "m") !== undefined)).toEqual(["c"]);
  });
});
