// What engines tell, and what is no event at all.

import { expect, test } from "bun:test";
import fc from "fast-check";
import { readCacheEvent } from "./cache-event.ts";

const HASH = "00000001ffFFffff";
const known = (action: string, isWarm?: boolean) => ({ action, hash: { low: 0xffffffff, high: 1 }, isWarm });

test.each([
  ["cache_created", { prefix_hash: HASH, token_count: 5 }, known("created")],
  ["CacheEvicted", { prefix_hash: HASH, token_count: 5, tier: "GpuHot" }, known("evicted", false)],
  [undefined, { action: "CacheOffloaded", prefix_hash: HASH, tier: "storage_warm" }, known("offloaded", true)],
  ["message", { event: "cache_reloaded", prefix_hash: HASH, tier: "gpu_hot" }, known("reloaded", false)],
  ["cache_purged", { prefix_hash: HASH, tier: "StorageWarm" }, known("purged", true)],
  ["cache_purged", {}, { action: "purged", hash: undefined, isWarm: undefined }],
  ["cache_created", {}, undefined],
  ["cache_created", { prefix_hash: `${HASH}0` }, undefined],
  ["cache_moved", { prefix_hash: HASH }, undefined],
])("%s %j", (name, data, expected) => {
  expect(readCacheEvent({ name, data: JSON.stringify(data) })).toEqual(expected as never);
});

test("property: anything is read without harm", () => {
  fc.assert(fc.property(fc.json(), (data) => void readCacheEvent({ name: "cache_created", data })));
  fc.assert(fc.property(fc.string(), fc.string(), (name, data) => void readCacheEvent({ name, data })));
});
