// Selection strategies: the shares they give, in which order, and that they stay within what is allowed.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { newCounters, toBackend } from "../../backends/backend.ts";
import type { BackendEntry } from "../../backends/board.ts";
import { documentSchema } from "../../config/sections/registry.ts";
import { STRATEGY_NAMES, type StrategyName } from "../../config/sections/routing.ts";
import { Choice } from "../choice.ts";
import type { SelectionQuery, SelectionStrategy } from "../strategy.ts";
import { consistentHash } from "./consistent-hash.ts";
import { leastLatency } from "./least-latency.ts";
import { randomChoice } from "./random.ts";
import { createStrategy } from "./registry.ts";
import { roundRobin } from "./round-robin.ts";
import { weightedRoundRobin } from "./weighted-round-robin.ts";

function entryOf(name: string, weight = 1): BackendEntry {
  const settings = documentSchema.parse({ backends: [{ name, url: "http://h", weight }] });
  return { backend: toBackend(settings.backends[0]!), health: "ready", available: true, counters: newCounters() };
}

function entriesOf(weights: Record<string, number>): BackendEntry[] {
  return Object.entries(weights).map(([name, weight]) => entryOf(name, weight));
}

/** Reproducible numbers in [0, 1), well spread (mulberry32). */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function queryOf(key = "session", random: () => number = seededRandom(1)): SelectionQuery {
  return { sessionKey: () => key, random, nowMs: 0, isRetry: false };
}

function strategyOf(selection_strategy: StrategyName): SelectionStrategy {
  return createStrategy(documentSchema.parse({ routing: { selection_strategy } }).routing);
}

const everyone = () => true;

/** A choice that is used. */
function select(
  strategy: SelectionStrategy,
  entries: readonly BackendEntry[],
  allowed: (entry: BackendEntry) => boolean,
  query: SelectionQuery,
): BackendEntry | undefined {
  const choice = choiceAmong(entries, allowed);
  const chosen = choice.choose(strategy, query);
  if (chosen < 0) return undefined;
  strategy.used?.(choice, query, chosen);
  return entries[chosen];
}

function choiceAmong(entries: readonly BackendEntry[], allowed: (entry: BackendEntry) => boolean): Choice {
  const choice = new Choice();
  choice.begin(entries);
  for (const [place, entry] of entries.entries()) if (allowed(entry)) choice.places.push(place);
  return choice;
}

function nameOf(entry: BackendEntry | undefined): string | undefined {
  return entry?.backend.name;
}

/** The names of a number of choices in a row. */
function choices(strategy: SelectionStrategy, entries: readonly BackendEntry[], count: number, query = queryOf()) {
  return Array.from({ length: count }, () => nameOf(select(strategy, entries, everyone, query)) ?? "nothing");
}

function shares(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

describe("every strategy", () => {
  for (const name of STRATEGY_NAMES) {
    test(`${name}: chooses somebody who is allowed exactly when there is somebody`, () => {
      const weight = fc.integer({ min: 0, max: 100 });
      fc.assert(
        fc.property(
          fc.array(fc.record({ weight, allowed: fc.boolean(), latency: fc.option(fc.nat()) }), { maxLength: 8 }),
          fc.integer(),
          (backends, seed) => {
            const entries = backends.map((backend, index) => entryOf(`b${index}`, backend.weight));
            entries.forEach((entry, index) => {
              entry.counters.expectedMs = backends[index]?.latency ?? undefined;
            });
            const allowed = new Set(entries.filter((_, index) => backends[index]?.allowed));
            const strategy = strategyOf(name);
            const query = queryOf(`key ${seed}`, seededRandom(seed));
            for (let count = 0; count < 10; count++) {
              const chosen = select(strategy, entries, (entry) => allowed.has(entry), query);
              if (allowed.size === 0) expect(chosen).toBeUndefined();
              else expect(allowed.has(chosen as BackendEntry)).toBe(true);
            }
          },
        ),
        { numRuns: 100 },
      );
    });
  }
});

describe("a choice that is not used moves nothing", () => {
  for (const name of ["RoundRobin", "WeightedRoundRobin", "ConsistentHash"] as const) {
    test(`property: ${name} goes on as if it had never been asked`, () => {
      fc.assert(
        fc.property(
          fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 5 }),
          fc.array(fc.record({ peeks: fc.nat({ max: 3 }), isRetry: fc.boolean() }), { maxLength: 20 }),
          (weights, steps) => {
            const entries = weights.map((weight, index) => entryOf(`b${index}`, weight));
            const [peeked, plain] = [strategyOf(name), strategyOf(name)];
            for (const { peeks, isRetry } of steps) {
              const query = { ...queryOf("session", () => 0.5), isRetry };
              for (let peek = 0; peek < peeks; peek++) choiceAmong(entries, everyone).choose(peeked, query);
              expect(nameOf(select(peeked, entries, everyone, query))).toBe(
                nameOf(select(plain, entries, everyone, query)) as string,
              );
            }
          },
        ),
        { numRuns: 100 },
      );
    });
  }
});

describe("the choices of retries take no turns of first choices", () => {
  for (const name of ["RoundRobin", "WeightedRoundRobin"] as const) {
    test(`${name}: first choices and retries are spread evenly, each for itself`, () => {
      for (const size of [2, 3, 4]) {
        const entries = Array.from({ length: size }, (_, index) => entryOf(`b${index}`));
        const failing = entries[0] as BackendEntry;
        const strategy = strategyOf(name);
        const first: string[] = [];
        const second: string[] = [];
        for (let count = 0; count < size * (size - 1); count++) {
          const chosen = select(strategy, entries, everyone, queryOf()) as BackendEntry;
          first.push(chosen.backend.name);
          if (chosen !== failing) continue;
          const others = (entry: BackendEntry) => entry !== failing;
          second.push(nameOf(select(strategy, entries, others, { ...queryOf(), isRetry: true })) as string);
        }
        expect(new Set(Object.values(shares(first)))).toEqual(new Set([size - 1]));
        expect(new Set(Object.values(shares(second)))).toEqual(new Set([1]));
      }
    });
  }
});

describe("RoundRobin", () => {
  test("takes one after the other", () => {
    const entries = entriesOf({ a: 1, b: 1, c: 1 });
    expect(
      choices(
        roundRobin(),
        entries,
        7,
        queryOf("", () => 0),
      ),
    ).toEqual(["a", "b", "c", "a", "b", "c", "a"]);
  });

  test("weights play no part", () => {
    expect(shares(choices(roundRobin(), entriesOf({ a: 100, b: 1 }), 10))).toEqual({ a: 5, b: 5 });
  });

  test("starts anywhere, so that the first backend does not get every first request", () => {
    const starts = [0, 0.34, 0.99].map((value) =>
      choices(
        roundRobin(),
        entriesOf({ a: 1, b: 1, c: 1 }),
        1,
        queryOf("", () => value),
      ),
    );
    expect(starts.flat()).toEqual(["a", "b", "c"]);
  });

  test("each list of candidates has its own turn", () => {
    const strategy = roundRobin();
    const first = entriesOf({ a: 1, b: 1 });
    const second = entriesOf({ c: 1, d: 1 });
    const query = queryOf("", () => 0);
    const names = [first, second, first, second].map((entries) => nameOf(select(strategy, entries, everyone, query)));
    expect(names).toEqual(["a", "c", "b", "d"]);
  });

  test("goes on behind the one that was chosen when others are not allowed", () => {
    const strategy = roundRobin();
    const entries = entriesOf({ a: 1, b: 1, c: 1 });
    const query = queryOf("", () => 0);
    const withoutA = (entry: BackendEntry) => entry.backend.name !== "a";
    const names = [withoutA, everyone, withoutA, everyone].map((allowed) =>
      nameOf(select(strategy, entries, allowed, query)),
    );
    expect(names).toEqual(["b", "c", "b", "c"]);
  });
});

describe("WeightedRoundRobin", () => {
  test("spreads turns evenly instead of in rows", () => {
    expect(choices(weightedRoundRobin(), entriesOf({ a: 3, b: 1 }), 8).join("")).toBe("aabaaaba");
    expect(choices(weightedRoundRobin(), entriesOf({ a: 5, b: 1, c: 1 }), 7).join("")).toBe("aabacaa");
  });

  test("property: in each round everyone gets exactly its weight, and never strays further than one round from it", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 6 }), (weights) => {
        const entries = weights.map((weight, index) => entryOf(`b${index}`, weight));
        const round = weights.reduce((sum, weight) => sum + weight, 0);
        const strategy = weightedRoundRobin();
        for (let repeat = 0; repeat < 3; repeat++) {
          const counts = shares(choices(strategy, entries, round));
          expect(weights.map((_, index) => counts[`b${index}`] ?? 0)).toEqual(weights);
        }
      }),
      { numRuns: 50 },
    );
  });

  test("property: equal weights never give one backend two turns more than another", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 100 }),
        fc.nat({ max: 60 }),
        (size, weight, count) => {
          const entries = Array.from({ length: size }, (_, index) => entryOf(`b${index}`, weight));
          const counts = shares(choices(weightedRoundRobin(), entries, count));
          const turns = entries.map((entry) => counts[entry.backend.name] ?? 0);
          expect(Math.max(...turns) - Math.min(...turns)).toBeLessThanOrEqual(1);
        },
      ),
    );
  });

  test("who was not allowed for a time is not owed the turns it missed", () => {
    const strategy = weightedRoundRobin();
    const entries = entriesOf({ a: 1, b: 1 });
    for (let count = 0; count < 100; count++)
      select(strategy, entries, (entry) => entry.backend.name === "a", queryOf());
    expect(shares(choices(strategy, entries, 10))).toEqual({ a: 5, b: 5 });
  });
});

describe("Random", () => {
  test("gives everyone the same share, whatever the weights", () => {
    const counts = shares(
      choices(randomChoice(), entriesOf({ a: 100, b: 1, c: 1, d: 0 }), 8_000, queryOf("", seededRandom(7))),
    );
    for (const name of ["a", "b", "c", "d"]) expect(Math.abs((counts[name] ?? 0) - 2_000)).toBeLessThan(200);
  });

  test("shares are the same among those who are allowed", () => {
    const strategy = randomChoice();
    const entries = entriesOf({ a: 1, b: 1, c: 1 });
    const query = queryOf("", seededRandom(8));
    const withoutB = (entry: BackendEntry) => entry.backend.name !== "b";
    const names = Array.from({ length: 2_000 }, () => nameOf(select(strategy, entries, withoutB, query)) as string);
    const counts = shares(names);
    expect(counts.b).toBeUndefined();
    expect(Math.abs((counts.a ?? 0) - 1_000)).toBeLessThan(150);
  });
});

describe("LeastLatency", () => {
  test("a slow measurement fades, so that a backend that was slow once is tried again", () => {
    const entries = entriesOf({ slow: 1, steady: 1 });
    Object.assign((entries[0] as BackendEntry).counters, { expectedMs: 900, latencyAtMs: 0 });
    Object.assign((entries[1] as BackendEntry).counters, { expectedMs: 100, latencyAtMs: 0 });
    const chosenAt = (nowMs: number) => {
      Object.assign((entries[1] as BackendEntry).counters, { latencyAtMs: nowMs });
      return nameOf(select(strategyOf("LeastLatency"), entries, everyone, { ...queryOf(), nowMs }));
    };
    expect(chosenAt(0)).toBe("steady");
    expect(chosenAt(600_000)).toBe("slow");
  });

  function measured(values: Record<string, [expectedMs: number | undefined, inFlight: number]>): BackendEntry[] {
    return Object.entries(values).map(([name, [expectedMs, inFlight]]) => {
      const entry = entryOf(name);
      Object.assign(entry.counters, { expectedMs, inFlight });
      return entry;
    });
  }

  const cases: [title: string, values: Record<string, [number | undefined, number]>, chosen: string][] = [
    ["the fastest", { a: [30, 0], b: [10, 0], c: [20, 0] }, "b"],
    ["not the fastest when it is drowned in requests", { a: [30, 0], b: [10, 5] }, "a"],
    ["still the fastest with a few requests", { a: [30, 0], b: [10, 1] }, "b"],
    ["one without a measurement", { a: [1, 0], b: [undefined, 0] }, "b"],
    ["of two without a measurement the idle one", { a: [undefined, 2], b: [undefined, 1] }, "b"],
  ];
  test.each(cases)("chooses %s", (_title, values, chosen) => {
    expect(nameOf(select(leastLatency(), measured(values), everyone, queryOf()))).toBe(chosen);
  });

  test("equals are chosen by chance, with the same share", () => {
    const entries = measured({ a: [10, 0], b: [10, 0], c: [10, 0], slow: [20, 0] });
    const counts = shares(choices(leastLatency(), entries, 3_000, queryOf("", seededRandom(3))));
    expect(counts.slow).toBeUndefined();
    for (const name of ["a", "b", "c"]) expect(Math.abs((counts[name] ?? 0) - 1_000)).toBeLessThan(150);
  });

  test("the fastest that is not allowed is passed over", () => {
    const entries = measured({ a: [30, 0], b: [10, 0] });
    expect(nameOf(select(leastLatency(), entries, (entry) => entry.backend.name === "a", queryOf()))).toBe("a");
  });
});

describe("ConsistentHash", () => {
  const KEYS = Array.from({ length: 6_000 }, (_, index) => `session-${index}`);

  function owners(entries: readonly BackendEntry[], allowed: (entry: BackendEntry) => boolean = everyone): string[] {
    const strategy = consistentHash();
    return KEYS.map((key) => nameOf(select(strategy, entries, allowed, queryOf(key))) as string);
  }

  test("the same key meets the same backend: on each request, in each process, in any order of the configuration", () => {
    const entries = entriesOf({ a: 1, b: 2, c: 3 });
    const strategy = consistentHash();
    const first = nameOf(select(strategy, entries, everyone, queryOf("k")));
    for (let count = 0; count < 20; count++)
      expect(nameOf(select(strategy, entries, everyone, queryOf("k")))).toBe(first as string);
    expect(owners(entriesOf({ c: 3, a: 1, b: 2 }))).toEqual(owners(entries));
  });

  test.each([[{ a: 1, b: 1, c: 1, d: 1 }], [{ a: 3, b: 1 }], [{ a: 50, b: 25, c: 25 }], [{ a: 100, b: 100 }]] as [
    Record<string, number>,
  ][])("shares of %j come near the weights", (weights) => {
    const counts = shares(owners(entriesOf(weights)));
    const sum = Object.values(weights).reduce((total, weight) => total + weight, 0);
    for (const [name, weight] of Object.entries(weights)) {
      const ideal = (KEYS.length * weight) / sum;
      expect(Math.abs((counts[name] ?? 0) - ideal) / ideal).toBeLessThan(0.3);
    }
  });

  const fleets: [weights: Record<string, number>][] = [
    [{ a: 1, b: 1, c: 1, d: 1 }],
    [{ a: 1, b: 1, c: 8 }],
    [{ a: 100, b: 50, c: 1 }],
    [{ a: 5, b: 5, standby: 0 }],
  ];
  for (const [weights] of fleets) {
    for (const leaver of Object.keys(weights)) {
      test(`of ${JSON.stringify(weights)} ${leaver} leaves: nobody else's sessions move`, () => {
        const before = owners(entriesOf(weights));
        const { [leaver]: _left, ...staying } = weights;
        const after = owners(entriesOf(staying));
        const moved = KEYS.filter((_, index) => before[index] !== leaver && before[index] !== after[index]);
        expect(moved.length).toBe(0);
      });
    }
  }

  test("one that is only passed over moves nobody else's sessions either, and its own spread over all others", () => {
    const entries = entriesOf({ a: 1, b: 1, c: 1, d: 1 });
    const before = owners(entries);
    const after = owners(entries, (entry) => entry.backend.name !== "a");
    const heirs = new Set<string>();
    KEYS.forEach((_, index) => {
      if (before[index] === "a") heirs.add(after[index] as string);
      else expect(after[index]).toBe(before[index] as string);
    });
    expect([...heirs].sort()).toEqual(["b", "c", "d"]);
  });
});

describe("ConsistentHash with a bound of the load", () => {
  const busy = (name: string, inFlight: number, weight = 1): BackendEntry => {
    const entry = entryOf(name, weight);
    entry.counters.inFlight = inFlight;
    return entry;
  };

  const fleet = fc.array(fc.record({ inFlight: fc.nat({ max: 60 }), weight: fc.integer({ min: 0, max: 5 }) }), {
    minLength: 1,
    maxLength: 8,
  });

  test("property: nobody gets more than its share, unless it has only a few; who has room keeps its sessions", () => {
    fc.assert(
      fc.property(fleet, fc.double({ min: 1, max: 4, noNaN: true }), fc.string(), (backends, factor, key) => {
        const entries = backends.map(({ inFlight, weight }, index) => busy(`b${index}`, inFlight, weight));
        const weightOf = (entry: BackendEntry) => Math.max(entry.backend.weight, 1);
        const open = 1 + entries.reduce((sum, entry) => sum + entry.counters.inFlight, 0);
        const weights = entries.reduce((sum, entry) => sum + weightOf(entry), 0);
        const hasRoom = (entry: BackendEntry) =>
          entry.counters.inFlight < Math.max(4, Math.ceil((factor * open * weightOf(entry)) / weights));
        const chosen = select(consistentHash(factor), entries, everyone, queryOf(key)) as BackendEntry;
        expect(hasRoom(chosen)).toBe(true);
        // Just as if those without room were not allowed: the session's next choice, not anybody.
        expect(chosen).toBe(select(consistentHash(), entries, hasRoom, queryOf(key)) as BackendEntry);
      }),
      { numRuns: 300 },
    );
  });

  test("one hot session fills its backend up to the bound and overflows to the others", () => {
    const entries = entriesOf({ a: 1, b: 1, c: 1, d: 1 });
    const strategy = strategyOf("ConsistentHash");
    for (let count = 0; count < 400; count++) {
      (select(strategy, entries, everyone, queryOf("hot")) as BackendEntry).counters.inFlight++;
    }
    const loads = entries.map(({ counters }) => counters.inFlight);
    expect(Math.max(...loads)).toBeLessThanOrEqual(Math.ceil((1.25 * 400) / 4));
    expect(Math.min(...loads)).toBeGreaterThan(0);
  });

  test("a session comes back to its backend as soon as that has room again", () => {
    const entries = entriesOf({ a: 1, b: 1, c: 1 });
    const strategy = consistentHash(1.25);
    const home = select(strategy, entries, everyone, queryOf("k")) as BackendEntry;
    home.counters.inFlight = 100;
    const guest = select(strategy, entries, everyone, queryOf("k")) as BackendEntry;
    expect(guest).not.toBe(home);
    home.counters.inFlight = 3;
    expect(select(strategy, entries, everyone, queryOf("k"))).toBe(home);
  });

  test("a few requests stay together, however idle the others are", () => {
    const entries = entriesOf({ a: 1, b: 1, c: 1, d: 1 });
    const strategy = consistentHash(1);
    const chosen = Array.from({ length: 5 }, () => {
      const entry = select(strategy, entries, everyone, queryOf("k")) as BackendEntry;
      entry.counters.inFlight++;
      return entry;
    });
    expect(new Set(chosen.slice(0, 4)).size).toBe(1);
    expect(chosen[4]).not.toBe(chosen[0] as BackendEntry);
  });

  test("the load of those who are not allowed plays no part", () => {
    const entries = [busy("away", 1_000), busy("a", 6), busy("b", 0)];
    const allowed = (entry: BackendEntry) => entry.backend.name !== "away";
    for (let index = 0; index < 50; index++) {
      expect(nameOf(select(consistentHash(1), entries, allowed, queryOf(`k${index}`)))).toBe("b");
    }
  });
});
