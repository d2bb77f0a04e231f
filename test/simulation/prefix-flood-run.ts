// A flood of distinct prefixes through the KV cache index.

import { documentSchema } from "../../src/config/sections/registry.ts";
import { KvIndex } from "../../src/kv-index/kv-index.ts";
import { PrefixHasher } from "../../src/kv-index/prefix-hash.ts";

const BACKENDS = ["a", "b", "c", "d"];
const MAX_ENTRIES = 100_000;
const BLOCKS_PER_PROMPT = 10;
const TENTHS = 10;

/** `rssBytes`: after each tenth. */
export function flood(prefixes: number, told?: (done: number, rssBytes: number) => void) {
  const settings = { ...documentSchema.parse({}).kv_cache_index, enabled: true, max_entries: MAX_ENTRIES };
  let nowMs = 0;
  const index = new KvIndex({ settings, now: () => nowMs, random: Math.random });
  index.apply(
    settings,
    BACKENDS.map((name) => ({ name, server: name })),
  );
  const hasher = new PrefixHasher();
  const filling = "x".repeat(512 * BLOCKS_PER_PROMPT);
  const rssBytes: number[] = [];
  let done = 0;
  for (let tenth = 1; tenth <= TENTHS; tenth++) {
    while (done < (prefixes * tenth) / TENTHS) {
      nowMs++;
      hasher.begin();
      hasher.text(`prompt ${done}`);
      hasher.text(filling);
      const chain = hasher.end();
      if (chain === undefined) throw new Error("the prompt is too short");
      const name = BACKENDS[done % BACKENDS.length] as string;
      index.look(chain);
      index.learn(name, chain);
      index.told(name, { action: "created", hash: { low: done, high: done >>> 3 }, isWarm: undefined });
      done += chain.blocks + 1;
    }
    Bun.gc(true);
    rssBytes.push(process.memoryUsage.rss());
    told?.(done, rssBytes.at(-1) as number);
  }
  return { prefixes: done, entries: index.stats().entries, maxEntries: MAX_ENTRIES, bytes: index.stats(), rssBytes };
}
