// What a lookup in the KV cache index costs: a prompt of 100 KB is read, hashed in blocks and looked up in an index of
// 100,000 entries, beside one hash of the same bytes.  sh bin/bun bench/kv-index.ts

import type { BackendEntry } from "../src/backends/board.ts";
import { documentSchema } from "../src/config/sections/registry.ts";
import { KvIndex } from "../src/kv-index/kv-index.ts";
import { JsonBody } from "../src/lib/request-body.ts";
import { firstRequest } from "../src/pipeline/model-request.ts";
import { createPromptPrefixes } from "../src/pipeline/prompt-prefixes.ts";
import { createPrompts } from "../src/prompts/resolve.ts";
import { withPrefixIndex } from "../src/routing/strategies/prefix-index.ts";
import { roundRobin } from "../src/routing/strategies/round-robin.ts";
import type { Ranking } from "../src/routing/strategy.ts";

const BACKENDS = 4;
const ENTRIES = 100_000;
const ROUNDS = 40;
const PER_ROUND = 50;

const defaults = documentSchema.parse({});
const settings = { ...defaults.kv_cache_index, enabled: true, max_entries: ENTRIES };
const index = new KvIndex({ settings, now: () => 0, random: Math.random });
const names = Array.from({ length: BACKENDS }, (_, place) => `b${place}`);
index.apply(
  settings,
  names.map((name) => ({ name, server: name })),
);
const prefixes = createPromptPrefixes(createPrompts(defaults.global_prompts, new Map()), index);
const strategy = withPrefixIndex(index, roundRobin());
const candidates = names.map(
  (name) => ({ backend: { name, weight: 1 }, counters: { inFlight: 1 } }) as unknown as BackendEntry,
);
const ranking: Ranking = { candidates, places: names.map((_, place) => place), scores: [], objections: [] };

function requestOf(turns: number, seed: number) {
  const words = Array.from({ length: Math.ceil(102_400 / turns / 9) }, (_, word) => `${seed}-${word} abc `);
  const messages = Array.from({ length: turns }, (_, turn) => ({
    role: turn % 2 === 0 ? "user" : "assistant",
    content: words.join("").slice(0, Math.floor(102_400 / turns)),
  }));
  const bytes = new TextEncoder().encode(JSON.stringify({ model: "m", messages }));
  const value = JSON.parse(new TextDecoder().decode(bytes));
  return { bytes, value };
}

/** A body that was not hashed yet: what is known of one is kept with it. */
const fresh = ({ bytes, value }: ReturnType<typeof requestOf>) =>
  firstRequest(
    { model: "m", stream: false, choices: 1, affinity: () => undefined },
    "chat",
    new JsonBody(bytes, value),
  );

/** Of several rounds, because others may use the machine meanwhile. */
function bestMicroseconds(work: () => void): number {
  const rounds: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const start = Bun.nanoseconds();
    for (let count = 0; count < PER_ROUND; count++) work();
    rounds.push((Bun.nanoseconds() - start) / PER_ROUND / 1000);
  }
  return Math.min(...rounds);
}

function lookUp(request: ReturnType<typeof requestOf>): void {
  const asked = fresh(request);
  strategy.score(ranking, {
    sessionKey: () => "",
    random: Math.random,
    nowMs: 0,
    isRetry: false,
    prefixAt: (name) => prefixes.at(asked, name),
  });
}

for (let seed = 0; index.stats().entries < ENTRIES; seed++) {
  prefixes.began(fresh(requestOf(1, seed)), candidates[seed % BACKENDS]?.backend as BackendEntry["backend"]);
}
for (const turns of [1, 20, 200]) {
  const request = requestOf(turns, 1_000_000 + turns);
  for (const { backend } of candidates) prefixes.began(fresh(request), backend);
  for (let warmUp = 0; warmUp < 3; warmUp++) bestMicroseconds(() => lookUp(request));
  const once = bestMicroseconds(() => void Bun.hash.xxHash64(request.bytes));
  const whole = bestMicroseconds(() => lookUp(request));
  console.log(
    `${turns} messages, ${BACKENDS} backends that hold all of it, ${index.stats().entries} entries: hash once ${once.toFixed(1)} us, lookup ${whole.toFixed(1)} us, more ${(whole - once).toFixed(1)} us`,
  );
}
