// Engines with prefix caches in virtual time, and the real strategies in front of them: how much of the prompts they find in
// their caches, how evenly they are loaded, and how long the first token takes.

import { newCounters, toBackend } from "../../src/backends/backend.ts";
import type { BackendEntry } from "../../src/backends/board.ts";
import { type BackendSettings, documentSchema } from "../../src/config/sections/registry.ts";
import type { StrategyName } from "../../src/config/sections/routing.ts";
import { KvIndex } from "../../src/kv-index/kv-index.ts";
import type { PrefixChain } from "../../src/kv-index/prefix-hash.ts";
import { Choice } from "../../src/routing/choice.ts";
import { withPrefixIndex } from "../../src/routing/strategies/prefix-index.ts";
import { createStrategy } from "../../src/routing/strategies/registry.ts";
import type { SelectionStrategy } from "../../src/routing/strategy.ts";
import type { Workload } from "./prefix-workloads.ts";
import { seededRandom } from "./seeded-random.ts";

/** One GPU each: prompts are read one after the other, answers are written side by side. */
const ENGINES = 8;
/** A block of 512 bytes is about 128 tokens, which are read at 8,000 a second. */
const BLOCK_READ_MS = 16;
const TOKEN_MS = 20;
const MAX_SIDE_BY_SIDE = 32;
const CACHE_BLOCKS = 6_000;
const LATENCY_SMOOTHING = 0.2;

export interface Routing {
  strategy: StrategyName;
  hasIndex?: boolean;
}

export interface Outcome {
  requests: number;
  /** Of all blocks of all prompts. */
  hitRate: number;
  /** Requests of the engine with the most, by the mean. */
  imbalance: number;
  firstTokenMs: number;
  p95FirstTokenMs: number;
}

interface Engine {
  entry: BackendEntry;
  running: number;
  waiting: (() => void)[];
  readerFreeMs: number;
  /** Blocks by their hashes, the least recently used first. */
  cache: Map<string, true>;
  served: number;
}

export function run(workload: Workload, { strategy: name, hasIndex = false }: Routing, seed: number): Outcome {
  const random = seededRandom(seed);
  const events = new EventHeap();
  const now = () => events.nowMs;
  const settings = documentSchema.parse({});
  const engines = Array.from({ length: ENGINES }, (_, place) => newEngine(place));
  const candidates = engines.map(({ entry }) => entry);
  const indexSettings = { ...settings.kv_cache_index, enabled: hasIndex };
  const configured = createStrategy({ ...settings.routing, selection_strategy: name }, indexSettings);
  const index = new KvIndex({ settings: indexSettings, now, random: random.next });
  index.apply(
    indexSettings,
    candidates.map(({ backend }) => ({ name: backend.name, server: "" })),
  );
  const strategy: SelectionStrategy = hasIndex ? withPrefixIndex(index, configured) : configured;
  const choice = new Choice();
  const firstTokens: number[] = [];
  let blocks = 0;
  let hits = 0;

  function choose(session: string, chain: PrefixChain): Engine {
    choice.begin(candidates);
    for (let place = 0; place < candidates.length; place++) choice.places.push(place);
    const query = {
      sessionKey: () => session,
      random: random.next,
      nowMs: now(),
      isRetry: false,
      prefixAt: () => chain,
    };
    const chosen = choice.choose(strategy, query);
    strategy.used?.(choice, query, chosen);
    return engines[chosen] as Engine;
  }

  function ask(session: string, chain: PrefixChain, tokens: number, answered: () => void): void {
    const engine = choose(session, chain);
    const { counters, backend } = engine.entry;
    const askedMs = now();
    counters.inFlight++;
    engine.served++;
    const begin = () => {
      engine.running++;
      const found = readPrompt(engine.cache, chain);
      blocks += chain.blocks;
      hits += found;
      engine.readerFreeMs = Math.max(engine.readerFreeMs, now()) + (chain.blocks - found + 0.25) * BLOCK_READ_MS;
      events.at(engine.readerFreeMs, () => {
        const latencyMs = now() - askedMs;
        firstTokens.push(latencyMs);
        const { latencyMs: average = latencyMs } = counters;
        counters.latencyMs = average + (latencyMs - average) * LATENCY_SMOOTHING;
        counters.latencyAtMs = now();
        index.learn(backend.name, chain);
        events.at(now() + tokens * TOKEN_MS, () => {
          counters.inFlight--;
          engine.running--;
          engine.waiting.shift()?.();
          answered();
        });
      });
    };
    if (engine.running < MAX_SIDE_BY_SIDE) begin();
    else engine.waiting.push(begin);
  }

  workload.begin({ at: (ms, what) => events.at(ms, what), now, ask, random: random.fork() });
  events.run();
  firstTokens.sort((one, other) => one - other);
  const served = engines.map((engine) => engine.served);
  return {
    requests: firstTokens.length,
    hitRate: hits / blocks,
    imbalance: (Math.max(...served) * ENGINES) / firstTokens.length,
    firstTokenMs: firstTokens.reduce((sum, each) => sum + each, 0) / firstTokens.length,
    p95FirstTokenMs: firstTokens[Math.floor(firstTokens.length * 0.95)] as number,
  };
}

function newEngine(place: number): Engine {
  const settings = documentSchema.parse({
    backends: [{ name: `engine-${place}`, type: "vllm", url: `http://127.0.0.1:${8_000 + place}`, models: ["m"] }],
  }).backends[0] as BackendSettings;
  const entry: BackendEntry = {
    backend: toBackend(settings),
    health: "ready",
    available: true,
    counters: newCounters(),
  };
  return { entry, running: 0, waiting: [], readerFreeMs: 0, cache: new Map(), served: 0 };
}

/** How many blocks were there; all of them are afterwards. */
function readPrompt(cache: Engine["cache"], { words, blocks }: PrefixChain): number {
  let found = 0;
  let isGap = false;
  const keys = Array.from({ length: blocks }, (_, block) => `${words[block * 2]},${words[block * 2 + 1]}`);
  for (const key of keys) {
    isGap ||= !cache.has(key);
    if (!isGap) found++;
  }
  // The first block counts as used last, as in real engines.
  for (const key of keys.toReversed()) {
    cache.delete(key);
    cache.set(key, true);
  }
  for (const key of cache.keys()) {
    if (cache.size <= CACHE_BLOCKS) break;
    cache.delete(key);
  }
  return found;
}

/** What happens at which time; at equal times in the order in which it was said. */
class EventHeap {
  nowMs = 0;
  readonly #heap: { ms: number; order: number; what: () => void }[] = [];
  #order = 0;

  at(ms: number, what: () => void): void {
    const heap = this.#heap;
    heap.push({ ms: Math.max(ms, this.nowMs), order: this.#order++, what });
    for (let place = heap.length - 1; place > 0; ) {
      const parent = (place - 1) >> 1;
      if (!this.#isBefore(place, parent)) break;
      this.#swap(place, parent);
      place = parent;
    }
  }

  run(): void {
    const heap = this.#heap;
    for (let next = heap[0]; next !== undefined; next = heap[0]) {
      const last = heap.pop() as typeof next;
      if (heap.length > 0) {
        heap[0] = last;
        this.#sink();
      }
      this.nowMs = next.ms;
      next.what();
    }
  }

  #sink(): void {
    for (let place = 0; ; ) {
      let least = place;
      for (const child of [place * 2 + 1, place * 2 + 2]) {
        if (child < this.#heap.length && this.#isBefore(child, least)) least = child;
      }
      if (least === place) return;
      this.#swap(place, least);
      place = least;
    }
  }

  #isBefore(one: number, other: number): boolean {
    const [a, b] = [this.#heap[one], this.#heap[other]];
    if (a === undefined || b === undefined) return false;
    return a.ms < b.ms || (a.ms === b.ms && a.order < b.order);
  }

  #swap(one: number, other: number): void {
    const heap = this.#heap;
    const held = heap[one] as (typeof heap)[number];
    heap[one] = heap[other] as (typeof heap)[number];
    heap[other] = held;
  }
}
