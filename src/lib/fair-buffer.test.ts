import { expect, test } from "bun:test";
import fc from "fast-check";
import { FairBuffer } from "./fair-buffer.ts";

interface Entry {
  source: string;
  number: number;
}

/** Adds entries of these sources, numbered in their order. */
function filled(buffer: FairBuffer<Entry>, sources: readonly string[]): Entry[] {
  for (const [number, source] of sources.entries()) buffer.add(source, { source, number });
  return [...buffer.entries()];
}

const names = (count: number) =>
  fc.array(
    fc.nat(count - 1).map((index) => `s${index}`),
    { maxLength: 300 },
  );

test("is never larger than it may be, and keeps the newest of each source", () => {
  fc.assert(
    fc.property(names(8), fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 6 }), (sources, most, mostOf) => {
      const buffer = new FairBuffer<Entry>(most, mostOf);
      const kept = filled(buffer, sources);
      expect(kept.length).toBe(buffer.size);
      expect(buffer.size).toBeLessThanOrEqual(most);
      const bySource = Map.groupBy(kept, ({ source }) => source);
      expect(bySource.size).toBeLessThanOrEqual(mostOf);
      for (const [source, entries] of bySource) {
        const all = [...sources.entries()].flatMap(([number, each]) => (each === source ? [{ source, number }] : []));
        expect(entries).toEqual(all.slice(-entries.length));
      }
    }),
  );
});

test("a source within its share loses nothing, however much others add", () => {
  const [most, mostOf] = [20, 4];
  fc.assert(
    fc.property(names(mostOf), fc.integer({ min: 0, max: 2_000 }), (sources, flood) => {
      const quiet = [...sources.slice(0, most / mostOf)].map(() => "quiet");
      const kept = filled(new FairBuffer<Entry>(most, mostOf), [
        ...quiet,
        ...sources.map((name) => (name === "s0" ? "s1" : name)),
        ...Array.from({ length: flood }, () => "s1"),
      ]);
      expect(kept.filter(({ source }) => source === "quiet")).toHaveLength(quiet.length);
    }),
    { numRuns: 60 },
  );
});

test("one source may use all that no other needs; beyond the most sources, the one that was silent longest goes", () => {
  const alone = filled(new FairBuffer<Entry>(5, 2), ["a", "a", "a", "a", "a", "a", "a"]);
  expect(alone.map(({ number }) => number)).toEqual([2, 3, 4, 5, 6]);
  const third = filled(new FairBuffer<Entry>(5, 2), ["a", "b", "a", "c"]);
  expect(third.map(({ source }) => source)).toEqual(["a", "a", "c"]);
});
