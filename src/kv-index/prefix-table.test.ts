// The table of prefix hashes against a plain model of it.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { seededRandom } from "../../test/simulation/seeded-random.ts";
import { BYTES_PER_ENTRY, type Overlap, PrefixTable } from "./prefix-table.ts";

const chainOf = (...blocks: number[]) => new Uint32Array(blocks.flatMap((block) => [block, block * 7 + 1]));
const NO_LIMIT = 0;

function tableOf(maxEntries: number): PrefixTable {
  return new PrefixTable(maxEntries, seededRandom(maxEntries).next);
}

function look(table: PrefixTable, chain: Uint32Array, since = NO_LIMIT, countsWarm = true, slots = 3): Overlap {
  const overlap = { matched: new Int32Array(slots), learnt: new Int32Array(slots), warm: new Int32Array(slots) };
  table.look(chain, since, countsWarm, overlap);
  return overlap;
}

const matched = (...given: Parameters<typeof look>) => [...look(...given).matched];

describe("PrefixTable", () => {
  test("finds how far each backend holds a chain without a gap", () => {
    const table = tableOf(100);
    table.learn(chainOf(1, 2, 3, 4), 0, 10);
    table.learn(chainOf(1, 2, 9), 1, 10);
    expect(matched(table, chainOf(1, 2, 3, 5))).toEqual([3, 2, 0]);
    expect(matched(table, chainOf(2, 3))).toEqual([2, 1, 0]); // by its hash alone: what it stands for is in it
    expect(matched(table, chainOf(7))).toEqual([0, 0, 0]);
    expect(table.size).toBe(7);
    expect([table.entriesOf(0), table.entriesOf(1), table.entriesOf(2)]).toEqual([4, 3, 0]);
  });

  test("what is too old does not count, and is forgotten", () => {
    const table = tableOf(100);
    table.learn(chainOf(1, 2), 0, 10);
    table.learn(chainOf(3), 0, 20);
    expect(matched(table, chainOf(1, 2), 11)).toEqual([0, 0, 0]);
    table.expire(11);
    expect(table.size).toBe(1);
    expect(matched(table, chainOf(3), 11)).toEqual([1, 0, 0]);
  });

  test("the deepest blocks of what was used longest ago go first", () => {
    const table = tableOf(4);
    table.learn(chainOf(1, 2, 3), 0, 1);
    table.learn(chainOf(1, 8), 0, 2);
    table.learn(chainOf(9), 0, 3);
    expect(table.size).toBe(4);
    expect(matched(table, chainOf(1, 2, 3))).toEqual([2, 0, 0]);
    expect(matched(table, chainOf(1, 8))).toEqual([2, 0, 0]);
  });

  test("property: it never holds more than it may, nor takes more memory, and counts what it holds", () => {
    const step = fc.record({
      kind: fc.constantFrom("learn", "confirm", "release", "warm", "clear", "expire"),
      blocks: fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 12 }),
      slot: fc.nat({ max: 2 }),
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), fc.array(step, { maxLength: 60 }), (maxEntries, steps) => {
        const table = tableOf(maxEntries);
        steps.forEach(({ kind, blocks, slot }, seconds) => {
          const [low, high] = chainOf(blocks[0] as number) as unknown as [number, number];
          if (kind === "learn") table.learn(chainOf(...blocks), slot, seconds);
          else if (kind === "confirm") table.confirm(low, high, slot, seconds, false);
          else if (kind === "release") table.release(low, high, slot, false);
          else if (kind === "warm") table.release(low, high, slot, true);
          else if (kind === "clear") table.clear(slot);
          else table.expire(seconds - 5);
          const held = [0, 1, 2].map((each) => {
            const found = Array.from({ length: 30 }, (_, block) => chainOf(block + 1));
            return found.filter((chain) => table.find(chain[0] as number, chain[1] as number, each) !== 0).length;
          });
          expect(held).toEqual([0, 1, 2].map((each) => table.entriesOf(each)));
          expect(held.reduce((sum, each) => sum + each, 0)).toBe(table.size);
          expect(table.size).toBeLessThanOrEqual(maxEntries);
          expect(table.bytes).toBeLessThanOrEqual((maxEntries + 1) * BYTES_PER_ENTRY + 8);
        });
      }),
      { numRuns: 200 },
    );
  });

  test("property: when it is full, the slot with the most gives up its oldest, as in a plain model of it", () => {
    const slots = [0, 1, 2, 17];
    const step = fc.record({
      kind: fc.constantFrom("learn", "learn", "confirm", "confirm", "release", "clear"),
      block: fc.integer({ min: 1, max: 12 }),
      slot: fc.constantFrom(...slots),
    });
    const isHeld = (table: PrefixTable, block: number, slot: number) =>
      table.find(...(chainOf(block) as unknown as [number, number]), slot) !== 0;
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.array(step, { maxLength: 120 }), (maxEntries, steps) => {
        let table = tableOf(maxEntries);
        const model = new Map<number, number[]>(slots.map((slot) => [slot, []])); // the oldest first
        const held = (slot: number) => model.get(slot) as number[];
        steps.forEach(({ kind, block, slot }, seconds) => {
          const [low, high] = chainOf(block) as unknown as [number, number];
          const most = Math.max(...slots.map((each) => held(each).length));
          const isFull = slots.reduce((sum, each) => sum + held(each).length, 0) === maxEntries;
          const isNew = !held(slot).includes(block);
          const others = held(slot).filter((each) => each !== block);
          if (kind === "learn") table.learn(chainOf(block), slot, seconds);
          else if (kind === "confirm") table.confirm(low, high, slot, seconds, false);
          else if (kind === "release") table.release(low, high, slot, false);
          else table.clear(slot);
          if (kind === "release") model.set(slot, others);
          else if (kind === "clear") model.set(slot, []);
          else {
            if (isFull && isNew) {
              const mayGive = held(slot).length === most ? [slot] : slots.filter((each) => held(each).length === most);
              const [giver, second] = mayGive.filter((each) => !isHeld(table, held(each)[0] as number, each));
              expect([giver === undefined, second]).toEqual([false, undefined]);
              held(giver as number).shift();
            }
            model.set(slot, [...held(slot).filter((each) => each !== block), block]);
          }
          if (seconds % 10 === 9) {
            const twin = tableOf(maxEntries);
            twin.restore(table.image());
            table = twin;
          }
          for (const each of slots) {
            const found = Array.from({ length: 12 }, (_, at) => at + 1).filter((at) => isHeld(table, at, each));
            expect(found).toEqual(held(each).toSorted((a, b) => a - b));
            expect(table.entriesOf(each)).toBe(found.length);
          }
        });
      }),
      { numRuns: 300 },
    );
  });

  test("property: a flood of one backend takes nothing of what another has within its share", () => {
    const flooded = fc.record({ blocks: fc.integer({ min: 1, max: 70 }), isTold: fc.boolean() });
    const shares = fc.array(fc.nat({ max: 30 }), { minLength: 2, maxLength: 6 });
    fc.assert(
      fc.property(shares, fc.array(flooded, { minLength: 1, maxLength: 20 }), (held, floods) => {
        const maxEntries = 60;
        const table = tableOf(maxEntries);
        held.forEach((count, slot) => {
          for (let block = 1; block <= count; block++) table.learn(chainOf(slot * 100 + block), slot + 1, block);
        });
        const before = held.map((_, slot) => table.entriesOf(slot + 1));
        const share = Math.floor(maxEntries / (before.filter((count) => count > 0).length + 1));
        let next = 10_000;
        for (const { blocks, isTold } of floods) {
          const chain = chainOf(...Array.from({ length: blocks }, () => next++));
          if (!isTold) table.learn(chain, 0, 99);
          else
            for (let word = 0; word < chain.length; word += 2)
              table.confirm(chain[word] as number, chain[word + 1] as number, 0, 99, false);
          expect(table.find(chain[0] as number, chain[1] as number, 0) !== 0 || isTold).toBe(true);
        }
        before.forEach((count, slot) => {
          const kept = Math.min(count, share);
          expect(table.entriesOf(slot + 1)).toBeGreaterThanOrEqual(kept);
          const newest = (held[slot] as number) - kept + 1;
          for (let block = newest; block <= (held[slot] as number); block++) {
            expect(matched(table, chainOf(slot * 100 + block), NO_LIMIT, true, 8)[slot + 1]).toBe(1);
          }
        });
      }),
      { numRuns: 300 },
    );
  });

  test("a prompt that is longer than its share is known by its beginning", () => {
    const table = tableOf(8);
    table.learn(chainOf(1, 2, 3, 4), 0, 1);
    table.learn(chainOf(11, 12, 13, 14, 15, 16, 17, 18), 1, 2);
    expect(matched(table, chainOf(11, 12, 13, 14, 15))).toEqual([0, 4, 0]);
    expect(matched(table, chainOf(1, 2, 3, 4))).toEqual([4, 0, 0]);
    table.learn(chainOf(21, 22, 23), 1, 3);
    expect(matched(table, chainOf(11, 12, 13, 14))).toEqual([0, 1, 0]);
    expect(matched(table, chainOf(21, 22, 23))).toEqual([0, 3, 0]);
  });

  test("confirming a hash renews what leads to it", () => {
    const table = tableOf(10);
    table.learn(chainOf(1, 2, 3), 0, 1);
    const [low, high] = chainOf(3) as unknown as [number, number];
    table.confirm(low, high, 0, 50, false);
    expect(matched(table, chainOf(1, 2, 3), 50)).toEqual([3, 0, 0]);
  });

  test("a hash that a backend tells of stands for all before it", () => {
    const table = tableOf(20);
    table.learn(chainOf(1, 2), 1, 1);
    table.confirm(3, 22, 0, 1, true);
    expect([...look(table, chainOf(1, 2, 3, 4)).matched]).toEqual([3, 2, 0]);
    expect([...look(table, chainOf(1, 2, 3, 4)).warm]).toEqual([3, 0, 0]);
    expect(matched(table, chainOf(1, 2, 3, 4), NO_LIMIT, false)).toEqual([0, 2, 0]);
    table.learn(chainOf(1, 2, 3, 4), 0, 1);
    table.release(2, 15, 0, false);
    expect(matched(table, chainOf(1, 2, 3, 4))).toEqual([4, 2, 0]); // it still says so
    const copy = tableOf(30);
    table.copyTo(copy);
    const twin = tableOf(20);
    twin.restore(table.image());
    for (const each of [table, copy, twin]) {
      expect(matched(each, chainOf(9, 9, 3))).toEqual([3, 0, 0]);
      each.release(3, 22, 0, false);
      expect(matched(each, chainOf(9, 9, 3))).toEqual([0, 0, 0]);
    }
  });

  test("releasing a hash takes its own blocks, and none that lead elsewhere or were told of", () => {
    const table = tableOf(20);
    const release = (block: number, staysWarm = false) => {
      const [low, high] = chainOf(block) as unknown as [number, number];
      table.release(low, high, 0, staysWarm);
    };
    table.learn(chainOf(1, 2, 3, 4), 0, 1);
    table.learn(chainOf(1, 2, 8, 9), 0, 1);
    release(9);
    expect(matched(table, chainOf(1, 2, 8, 9))).toEqual([2, 0, 0]);
    expect(matched(table, chainOf(1, 2, 3, 4))).toEqual([4, 0, 0]);
    table.confirm(3, 22, 0, 1, false);
    release(4, true);
    expect([...look(table, chainOf(1, 2, 3, 4)).warm]).toEqual([1, 0, 0]);
    expect(matched(table, chainOf(1, 2, 3, 4), NO_LIMIT, false)).toEqual([3, 0, 0]);
    release(3);
    release(4);
    release(2);
    expect(table.size).toBe(0);
  });

  test("another size keeps the newest of each backend", () => {
    const table = tableOf(100);
    for (let block = 1; block <= 50; block++) table.learn(chainOf(block), 0, block);
    for (let block = 1; block <= 3; block++) table.learn(chainOf(block), 1, block);
    for (let block = 1; block <= 40; block++) table.learn(chainOf(block), 2, 99);
    const smaller = tableOf(9);
    table.copyTo(smaller);
    expect([0, 1, 2].map((slot) => smaller.entriesOf(slot))).toEqual([3, 3, 3]);
    expect(matched(smaller, chainOf(48))).toEqual([1, 0, 0]);
    expect(matched(smaller, chainOf(38))).toEqual([0, 0, 1]);
  });

  test("another size keeps the newest, with what leads to them", () => {
    const table = tableOf(100);
    for (let block = 1; block <= 20; block++) table.learn(chainOf(100, 200, block), 0, block);
    const smaller = tableOf(6);
    table.copyTo(smaller);
    expect(smaller.size).toBe(6);
    expect(matched(smaller, chainOf(100, 200, 20))).toEqual([3, 0, 0]);
    expect(matched(smaller, chainOf(100, 200, 16))).toEqual([2, 0, 0]);
    const [low, high] = chainOf(20) as unknown as [number, number];
    smaller.confirm(low, high, 0, 90, false);
    expect(matched(smaller, chainOf(100, 200, 20), 90)).toEqual([3, 0, 0]);
  });
});
