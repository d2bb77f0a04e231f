// The scores of the index, the bound above them, and who chooses when it does not.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { newCounters } from "../../backends/backend.ts";
import type { BackendEntry } from "../../backends/board.ts";
import { documentSchema } from "../../config/sections/registry.ts";
import { KvIndex, type KvIndexSettings } from "../../kv-index/kv-index.ts";
import { PrefixChain } from "../../kv-index/prefix-hash.ts";
import { Choice } from "../choice.ts";
import type { SelectionQuery } from "../strategy.ts";
import { withPrefixIndex } from "./prefix-index.ts";
import { prefixRing } from "./prefix-ring.ts";
import { roundRobin } from "./round-robin.ts";

const DEFAULTS = documentSchema.parse({}).kv_cache_index;
const chainOf = (...blocks: number[]) => new PrefixChain(new Uint32Array(blocks.flatMap((block) => [block, block])));

function entryOf(name: string, inFlight: number, weight = 1): BackendEntry {
  return { backend: { name, weight }, counters: { ...newCounters(), inFlight } } as unknown as BackendEntry;
}

function queryOf(chain: PrefixChain | undefined): SelectionQuery {
  return { sessionKey: () => "session", random: () => 0, nowMs: 0, isRetry: false, prefixAt: () => chain };
}

function indexOf(names: readonly string[], settings: KvIndexSettings = DEFAULTS): KvIndex {
  const index = new KvIndex({ settings, now: () => 0, random: () => 0.3 });
  index.apply(
    settings,
    names.map((name) => ({ name, server: name })),
  );
  return index;
}

function choose(strategy: ReturnType<typeof withPrefixIndex>, entries: readonly BackendEntry[], chain?: PrefixChain) {
  const choice = new Choice();
  choice.begin(entries);
  for (let place = 0; place < entries.length; place++) choice.places.push(place);
  const query = queryOf(chain);
  const chosen = choice.choose(strategy, query);
  strategy.used?.(choice, query, chosen);
  return { name: entries[chosen]?.backend.name, scores: [...choice.scores], objections: [...choice.objections] };
}

describe("the index above a strategy", () => {
  const A = chainOf(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);

  test("scores as the specification says", () => {
    const index = indexOf(["a", "b"]);
    index.learn("a", chainOf(1, 2, 3, 4, 5));
    index.learn("b", chainOf(1, 2));
    for (let count = 0; count < 10; count++) index.ended("a", count < 3);
    const { scores, name } = choose(withPrefixIndex(index, roundRobin()), [entryOf("a", 2), entryOf("b", 4)], A);
    expect(scores[0]).toBeCloseTo(0.6 * 0.5 + 0.3 * 0.5 + 0.1 * 0.7);
    expect(scores[1]).toBeCloseTo(0.6 * 0.2 + 0 + 0.1);
    expect(name).toBe("a");
    expect(index.stats()).toMatchObject({ lookups: 1, hits: 1 });
  });

  test("the threshold is asked before the tier counts", () => {
    const settings = {
      ...DEFAULTS,
      storage_offloading: { enabled: true, treat_eviction_as_offload: true },
      scoring: { ...DEFAULTS.scoring, min_overlap_threshold: 0.5 },
    };
    const index = indexOf(["a", "b"], settings);
    const strategy = withPrefixIndex(index, roundRobin());
    index.learn("b", chainOf(1, 2, 3, 4, 5));
    index.told("b", { action: "offloaded", hash: { low: 5, high: 5 }, isWarm: undefined });
    const { scores, name } = choose(strategy, [entryOf("a", 0), entryOf("b", 0)], A);
    expect(name).toBe("b");
    expect(scores[1]).toBeCloseTo(0.6 * 0.5 * 0.6 + 0.3 + 0.1); // all five are outside of the GPU
    expect(strategy.decidedBy).toBe("PrefixAwareHash");
    index.told("b", { action: "evicted", hash: { low: 5, high: 5 }, isWarm: true });
    choose(strategy, [entryOf("a", 0), entryOf("b", 0)], A);
    expect(strategy.decidedBy).toBeUndefined();
  });

  test("below the threshold, and for prompts without a block, the strategy chooses as if there were no index", () => {
    const index = indexOf(["a", "b"]);
    index.learn("b", chainOf(1, 2));
    const strategy = withPrefixIndex(index, roundRobin());
    const entries = [entryOf("a", 0), entryOf("b", 0)];
    const names = [A, undefined, A, undefined].map((chain) => choose(strategy, entries, chain).name);
    expect(names).toEqual(["a", "b", "a", "b"]);
    expect(strategy.scoreMeans).toBe(roundRobin().scoreMeans);
    expect(index.stats()).toMatchObject({ lookups: 2, hits: 0 });
  });

  test("a threshold of 0 is reached by whoever has nothing of the prompt", () => {
    const index = indexOf(["a", "b"], { ...DEFAULTS, scoring: { ...DEFAULTS.scoring, min_overlap_threshold: 0 } });
    const strategy = withPrefixIndex(index, roundRobin());
    const { scores, name } = choose(strategy, [entryOf("a", 2), entryOf("b", 1)], A);
    expect(name).toBe("b");
    expect(scores[1]).toBeCloseTo(0.3 * 0.5 + 0.1);
    expect(strategy.decidedBy).toBe("PrefixAwareHash");
    choose(strategy, [entryOf("a", 2), entryOf("b", 1)], undefined);
    expect(strategy.decidedBy).toBeUndefined();
  });

  test("each candidate is scored by the prompt that it would get", () => {
    const index = indexOf(["a", "b"]);
    index.learn("a", chainOf(1, 2));
    index.learn("b", chainOf(9, 8));
    const choice = new Choice();
    const entries = [entryOf("a", 0), entryOf("b", 0)];
    choice.begin(entries);
    choice.places.push(0, 1);
    const prefixAt = (name: string) => (name === "a" ? chainOf(7, 7) : chainOf(9, 8));
    const chosen = choice.choose(withPrefixIndex(index, roundRobin()), { ...queryOf(undefined), prefixAt });
    expect(entries[chosen]?.backend.name).toBe("b");
  });

  test("property: whoever is chosen has no more than 1.25 times its share, or only a few, while another is free", () => {
    const fleet = fc.array(fc.nat({ max: 40 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(fleet, fc.nat({ max: 7 }), fc.boolean(), (loads, holder, isRing) => {
        const entries = loads.map((inFlight, place) => entryOf(`b${place}`, inFlight));
        const index = indexOf(entries.map(({ backend }) => backend.name));
        index.learn(`b${holder}`, A);
        const { name } = choose(isRing ? prefixRing() : withPrefixIndex(index, prefixRing()), entries, A);
        const chosen = loads[entries.findIndex(({ backend }) => backend.name === name)] as number;
        const mean = loads.reduce((sum, load) => sum + load, 0) / loads.length;
        const isOver = (load: number) => load > 4 && load > 1.25 * mean;
        expect(isOver(chosen) && loads.some((load) => !isOver(load))).toBe(false);
      }),
      { examples: [[[11, 6], 0, false]] },
    );
  });

  test("one prefix that everybody asks for spreads as its backends fill up", () => {
    const entries = ["a", "b", "c", "d"].map((name) => entryOf(name, 0));
    const index = indexOf(["a", "b", "c", "d"]);
    const strategy = withPrefixIndex(index, prefixRing());
    for (let count = 0; count < 200; count++) {
      const { name } = choose(strategy, entries, A);
      const entry = entries.find(({ backend }) => backend.name === name) as BackendEntry;
      entry.counters.inFlight++;
      index.learn(entry.backend.name, A);
    }
    const loads = entries.map(({ counters }) => counters.inFlight);
    expect(Math.max(...loads)).toBeLessThanOrEqual(63);
    expect(Math.min(...loads)).toBeGreaterThan(30);
  });
});

describe("claims of backends", () => {
  const created = (block: number) =>
    ({ action: "created", hash: { low: block, high: block }, isWarm: undefined }) as const;

  test("property: what a backend only claims draws an equal share of the requests and eight more, whatever it claims", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 6 }), fc.array(fc.boolean(), { maxLength: 200 }), (size, claims) => {
        const names = Array.from({ length: size }, (_, place) => `b${place}`);
        const index = indexOf(names);
        const strategy = withPrefixIndex(index, roundRobin());
        const entries = names.map((name) => entryOf(name, 0));
        claims.forEach((isClaimed, at) => {
          if (isClaimed) index.told("b1", created(1_000 + at));
          choose(strategy, entries, chainOf(5_000 + at, 1_000 + at));
        });
        expect(index.stats().hits).toBeLessThanOrEqual(8 + claims.length / size);
        const claimed = claims.filter(Boolean).length;
        expect(index.stats().hits).toBeGreaterThanOrEqual(Math.min(8, claimed));
      }),
    );
  });

  test("what it has answered counts, whatever its claims are worth", () => {
    const index = indexOf(["a", "b"]);
    const strategy = withPrefixIndex(index, roundRobin());
    const entries = [entryOf("a", 0), entryOf("b", 0)];
    index.learn("b", chainOf(1, 2, 3));
    for (let block = 100; block < 130; block++) {
      index.told("b", created(block));
      choose(strategy, entries, chainOf(block - 1_000, block));
    }
    index.told("b", created(6));
    const { scores } = choose(strategy, entries, chainOf(1, 2, 3, 4, 5, 6));
    expect(scores[1]).toBeCloseTo(0.6 * 0.5 + 0.3 + 0.1);
  });

  test("a backend whose answers contradict its claims is forgotten and not heard for as long as entries count", () => {
    let nowMs = 0;
    const index = new KvIndex({ settings: DEFAULTS, now: () => nowMs, random: () => 0.3 });
    index.apply(DEFAULTS, [{ name: "a", server: "a" }]);
    const overlap = () => {
      index.look(chainOf(1, 2));
      return index.rawOverlap("a");
    };
    index.told("a", created(2));
    expect(index.claimOf("a", chainOf(1, 2, 3, 4))).toEqual({ told: 2, blocks: 4 });
    expect([1, 2, 3].map(() => index.ended("a", false, false))).toEqual([false, false, true]);
    expect(index.claimOf("a", chainOf(1, 2, 3, 4))).toBeUndefined();
    const known = () => {
      index.told("a", created(2));
      index.learn("a", chainOf(1, 2));
      return [overlap(), index.stats().backends[0]?.distrusted];
    };
    expect(known()).toEqual([0, true]);
    nowMs = 599_000;
    expect(known()).toEqual([0, true]);
    nowMs = 600_000;
    expect(known()).toEqual([1, false]);
    for (let count = 0; count < 3; count++) index.ended("a", false, false);
    expect(known()).toEqual([0, true]);
    index.clear("a"); // an operator says that it may be believed again
    expect(known()).toEqual([1, false]);
  });
});

describe("the index and its backends", () => {
  test("a backend that is gone or another server is forgotten, all others stay", () => {
    const index = indexOf(["a", "b", "c"]);
    for (const name of ["a", "b", "c"]) index.learn(name, chainOf(1, 2));
    index.apply(DEFAULTS, [
      { name: "a", server: "a" },
      { name: "b", server: "elsewhere" },
      { name: "d", server: "d" },
    ]);
    const rows = index.stats().backends.map(({ backend, entries }) => [backend, entries]);
    expect(rows).toEqual([
      ["a", 2],
      ["b", 0],
      ["d", 0],
    ]);
    index.learn("d", chainOf(1));
    index.look(chainOf(1, 2));
    expect(["a", "b", "d", "c"].map((name) => index.rawOverlap(name))).toEqual([1, 0, 0.5, 0]);
  });

  test("what is older than its time does not count", () => {
    let nowMs = 0;
    const index = new KvIndex({
      settings: { ...DEFAULTS, entry_ttl_seconds: 10 },
      now: () => nowMs,
      random: () => 0.5,
    });
    index.apply({ ...DEFAULTS, entry_ttl_seconds: 10 }, [{ name: "a", server: "a" }]);
    index.learn("a", chainOf(1));
    nowMs = 10_000;
    index.look(chainOf(1));
    expect(index.rawOverlap("a")).toBe(1);
    nowMs = 11_000;
    index.look(chainOf(1));
    expect(index.rawOverlap("a")).toBe(0);
    expect(index.stats().entries).toBe(0);
  });
});
