import { expect, test } from "bun:test";
import fc from "fast-check";
import { BoundedMap } from "./bounded-map.ts";

function mapOf(more: { maxEntries?: number; maxBytes?: number; ttlMs?: number } = {}) {
  let nowMs = 0;
  const map = new BoundedMap<number>({ maxEntries: 3, maxBytes: 1000, ttlMs: 10, now: () => nowMs, ...more });
  function advance(ms: number): void {
    nowMs += ms;
  }
  return { map, advance };
}

test("what was not used for longest goes first", () => {
  const { map } = mapOf();
  map.set("a", 1, 1);
  map.set("b", 2, 1);
  map.set("c", 3, 1);
  map.get("a");
  map.set("d", 4, 1);
  expect([map.get("a"), map.get("b"), map.get("c"), map.get("d")]).toEqual([1, undefined, 3, 4]);
});

test("an entry ends with its time, counted from when it was set", () => {
  const { map, advance } = mapOf();
  map.set("a", 1, 1);
  advance(10);
  expect(map.get("a")).toBe(1);
  advance(1);
  expect(map.get("a")).toBeUndefined();
  expect(map.bytes).toBe(0);
});

test("an entry that is renewed lives as long as a new one; one that is over does not come back", () => {
  const { map, advance } = mapOf();
  map.set("a", 1, 1);
  advance(10);
  expect(map.renew("a")).toBe(true);
  advance(10);
  expect(map.get("a")).toBe(1);
  advance(1);
  expect([map.renew("a"), map.get("a"), map.renew("b")]).toEqual([false, undefined, false]);
});

test("a value larger than everything is not kept, and pushes nothing out", () => {
  const { map } = mapOf({ maxBytes: 20 });
  map.set("a", 1, 5);
  map.set("b", 2, 50);
  expect(map.get("a")).toBe(1);
  expect(map.get("b")).toBeUndefined();
});

test("property: never more entries or bytes than allowed, and the newest one is there", () => {
  const step = fc.record({ key: fc.constantFrom("a", "b", "c", "d", "e"), bytes: fc.nat(30), remove: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const { map } = mapOf({ maxBytes: 60 });
      const model = new Map<string, number>();
      for (const [index, { key, bytes, remove }] of steps.entries()) {
        if (remove) {
          map.delete(key);
          model.delete(key);
          expect(map.get(key)).toBeUndefined();
        } else {
          map.set(key, index, bytes);
          model.set(key, index);
          expect(map.get(key)).toBe(index);
        }
        expect(map.size).toBeLessThanOrEqual(3);
        expect(map.bytes).toBeLessThanOrEqual(60);
        for (const [each, value] of model) expect([value, undefined]).toContain(map.get(each));
      }
      for (const key of model.keys()) map.delete(key);
      expect(map.bytes).toBe(0);
    }),
  );
});
