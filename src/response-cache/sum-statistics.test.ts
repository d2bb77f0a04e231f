// What several processes have counted of one cache is told as one cache.

import { expect, test } from "bun:test";
import type { CacheStatistics } from "./cache.ts";
import { sumStatistics } from "./sum-statistics.ts";

function counted(hits: number, model: string, connected = true): CacheStatistics {
  const numbers = { hits, misses: 1, stores: 2 };
  const unknown = { capacity: null, maxBytes: null, entries: null, bytes: null, evictions: null, expirations: null };
  return {
    ...{ ...unknown, ...numbers, connected, backend: "redis" },
    models: [{ model, ...numbers, entries: null, bytes: null }],
  };
}

test("numbers add up, for each model as well, and one that has lost the server is enough", () => {
  const sum = sumStatistics(counted(0, "a"), [counted(3, "a"), counted(4, "b", false)]);
  expect(sum).toMatchObject({ backend: "redis", connected: false, hits: 7, misses: 3, stores: 6, entries: null });
  expect(sum.models).toEqual([
    { model: "a", hits: 3, misses: 2, stores: 4, entries: null, bytes: null },
    { model: "b", hits: 4, misses: 1, stores: 2, entries: null, bytes: null },
  ]);
  expect(sumStatistics(counted(1, "a"), []).connected).toBe(true);
});
