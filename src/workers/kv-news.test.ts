// What is told of KV caches is bounded, in order, and enough for another index to know the same.

import { expect, test } from "bun:test";
import { documentSchema } from "../config/sections/registry.ts";
import { KvIndex } from "../kv-index/kv-index.ts";
import type { KvNews } from "../kv-index/kv-teller.ts";
import { PrefixChain } from "../kv-index/prefix-hash.ts";
import { createKvNews } from "./kv-news.ts";

const SETTINGS = documentSchema.parse({}).kv_cache_index;
const BACKENDS = ["a", "b"].map((name) => ({ name, server: name }));
const chainOf = (...blocks: number[]) => new PrefixChain(new Uint32Array(blocks.flatMap((block) => [block, block])));

function newIndex(now = () => 0): KvIndex {
  const index = new KvIndex({ settings: SETTINGS, now, random: () => 0.3 });
  index.apply(SETTINGS, BACKENDS);
  return index;
}

function overlaps(index: KvIndex, chain: PrefixChain): number[] {
  index.look(chain);
  return BACKENDS.map(({ name }) => index.rawOverlap(name));
}

test("news say what has happened, and a clear comes behind what was told before", () => {
  const heard: unknown[] = [];
  const news = createKvNews(
    (told) => heard.push(told),
    (name) => heard.push(name),
  );
  news.learnt("a", new Uint32Array([1, 1]));
  news.ended("a", true, undefined);
  news.counted(1, 1);
  news.counted(0, 1);
  news.cleared("a");
  news.flush();
  const told: KvNews = {
    learnt: [["a", new Uint32Array([1, 1])]],
    told: [],
    ended: [["a", true, undefined]],
    hits: 1,
    lookups: 2,
  };
  expect(heard).toEqual([told, "a"]);
});

test("more blocks than one set of news may hold are not told", () => {
  const heard: KvNews[] = [];
  const news = createKvNews(
    (told) => heard.push(told),
    () => {},
  );
  for (let count = 0; count < 100; count++) news.learnt("a", new Uint32Array(2 * 1_000));
  news.flush();
  expect(heard[0]?.learnt.length).toBe(16);
});

test("a flood of events of one backend leaves room for those of another", () => {
  const heard: KvNews[] = [];
  const news = createKvNews(
    (told) => heard.push(told),
    () => {},
  );
  const event = { action: "created", hash: { low: 1, high: 1 }, isWarm: undefined } as const;
  for (let count = 0; count < 10_000; count++) news.told("a", event);
  news.told("b", event);
  news.flush();
  news.told("a", event);
  news.flush();
  expect(heard.map(({ told }) => told.length)).toEqual([4_097, 1]);
  expect(heard[0]?.told.at(-1)).toEqual(["b", event]);
});

test("an index that takes over the image of another one knows the same, and forgets it at the same time", () => {
  let nowMs = 5_000_000;
  const first = newIndex(() => nowMs);
  for (let prompt = 1; prompt <= 2_000; prompt++)
    first.learn(prompt % 2 === 0 ? "a" : "b", chainOf(prompt, prompt + 1));
  first.clear("a");
  first.learn("a", chainOf(1, 2, 3));
  const second = newIndex(() => nowMs - 4_000_000);
  second.restore(first.image());
  for (const chain of [chainOf(1, 2, 3), chainOf(1, 2), chainOf(7, 8), chainOf(1_999, 2_000), chainOf(8, 9)]) {
    expect(overlaps(second, chain)).toEqual(overlaps(first, chain));
  }
  expect(second.stats()).toMatchObject({ entries: first.stats().entries, backends: first.stats().backends });
  nowMs += SETTINGS.entry_ttl_seconds * 1_000 + 1_000;
  for (const index of [first, second]) {
    index.learn("b", chainOf(90_001));
    expect(index.stats().entries).toBe(1);
  }
});

test("an index that takes over the image of another one distrusts the same backends", () => {
  let nowMs = 5_000_000;
  const first = newIndex(() => nowMs);
  for (let count = 0; count < 3; count++) first.ended("b", false, false);
  const second = newIndex(() => nowMs - 4_000_000);
  second.restore(first.image());
  const distrusted = () => second.stats().backends.map((backend) => backend.distrusted);
  expect(distrusted()).toEqual([false, true]);
  nowMs += SETTINGS.entry_ttl_seconds * 1_000;
  expect(distrusted()).toEqual([false, false]);
});
