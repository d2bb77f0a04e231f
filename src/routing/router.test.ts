// Which backends are asked in which order, and what is said when none can be.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { newCounters, toBackend } from "../backends/backend.ts";
import type { BackendEntry } from "../backends/board.ts";
import type { Operation } from "../backends/operations.ts";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { STRATEGY_NAMES, type StrategyName } from "../config/sections/routing.ts";
import type { Permit } from "./circuits.ts";
import { createRouter } from "./router.ts";
import { createStrategy } from "./strategies/registry.ts";
import type { SelectionStrategy } from "./strategy.ts";

type BackendInput = NonNullable<ConfigDocument["backends"]>[number];

function entryOf(name: string, more: Partial<BackendInput> = {}, available = true): BackendEntry {
  const settings = documentSchema.parse({ backends: [{ name, url: "http://h", ...more }] });
  const backend = toBackend(settings.backends[0]!);
  return { backend, health: available ? "ready" : "unhealthy", available, counters: newCounters() };
}

const query = { sessionKey: () => "session", random: Math.random, nowMs: 0, isRetry: false };
const nobody: ReadonlySet<string> = new Set();
const permit: Permit = { isProbe: false, settle() {} };

interface Ask {
  operation?: Operation;
  tried?: Iterable<string>;
  avoid?: Iterable<string>;
  prefer?: string;
  /** Backends whose circuit is open. */
  open?: readonly string[];
  /** Backends without room under their limit. */
  full?: readonly string[];
  /** Backends that turn out not to be free when they are chosen. */
  shut?: string[];
}

/** A choice, and what is told of it. */
function choose(strategy: SelectionStrategy, entries: readonly BackendEntry[], ask: Ask = {}) {
  const { operation = "chat", tried = nobody, avoid = nobody, prefer, open = [], full = [], shut = [] } = ask;
  const router = createRouter({
    strategy,
    circuits: { allows: (name) => !open.includes(name) && !isShut.has(name) },
    limits: { backendHasRoom: (name) => !full.includes(name) },
  });
  const isShut = new Set<string>();
  const admit = (name: string) => {
    if (!shut.includes(name)) return permit;
    isShut.add(name);
    return undefined;
  };
  const request = { operation, prefer, avoid: new Set(avoid) };
  return router.choose(entries, request, new Set([...tried, ...avoid]), query, admit, true);
}

function strategyOf(selection_strategy: StrategyName): SelectionStrategy {
  return createStrategy(documentSchema.parse({ routing: { selection_strategy } }).routing);
}

describe("choosing a backend", () => {
  for (const name of STRATEGY_NAMES) {
    describe(name, () => {
      const select = (entries: readonly BackendEntry[], tried: readonly string[] = []) =>
        choose(strategyOf(name), entries, { tried })?.entry.backend.name;

      test("weight 0 stands by: chosen only when no other is left", () => {
        const entries = [entryOf("standby", { weight: 0 }), entryOf("a"), entryOf("b")];
        for (let count = 0; count < 30; count++) expect(select(entries)).not.toBe("standby");
        expect(select([entryOf("standby", { weight: 0 })])).toBe("standby");
      });

      test("an untried standby comes before a second try", () => {
        const entries = [entryOf("standby", { weight: 0 }), entryOf("a"), entryOf("b")];
        expect(select(entries, ["a"])).toBe("b");
        expect(select(entries, ["a", "b"])).toBe("standby");
      });

      test("when all were tried, the second round leaves standbys out again", () => {
        const entries = [entryOf("standby", { weight: 0 }), entryOf("a")];
        for (let count = 0; count < 10; count++) expect(select(entries, ["a", "standby"])).toBe("a");
        expect(select([entryOf("standby", { weight: 0 })], ["standby"])).toBe("standby");
      });

      test("a backend without the operation is never chosen", () => {
        const entries = [entryOf("claude", { type: "anthropic", weight: 100 }), entryOf("b", { weight: 0 })];
        const ask = (list: readonly BackendEntry[], tried: readonly string[] = []) =>
          choose(strategyOf(name), list, { operation: "embeddings", tried })?.entry.backend.name;
        expect(ask(entries)).toBe("b");
        expect(ask(entries, ["b"])).toBe("b");
        expect(ask(entries.slice(0, 1))).toBeUndefined();
      });

      test("a backend whose circuit or limit refuses is never chosen, not even as the last one or a second time", () => {
        const entries = [entryOf("a"), entryOf("b", { weight: 0 }), entryOf("c", { weight: 5 })];
        const names = ["a", "b", "c"];
        for (const door of ["open", "full"] as const) {
          const among = (tried: readonly string[], allowed: readonly string[]) => {
            const shut = names.filter((each) => !allowed.includes(each));
            return choose(strategyOf(name), entries, { tried, [door]: shut })?.entry.backend.name;
          };
          expect(among([], ["b"])).toBe("b");
          expect(among(["a"], ["a"])).toBe("a");
          expect(among(["b", "c"], ["b", "c"])).toBe("c");
          expect(among(["b"], ["a", "b"])).toBe("a");
          for (const tried of [[], ["a"], ["a", "b", "c"]]) expect(among(tried, [])).toBeUndefined();
        }
      });

      test("one that is not admitted after all gives way, and has used no turn", () => {
        const entries = [entryOf("a"), entryOf("b")];
        const strategy = strategyOf(name);
        for (let count = 0; count < 10; count++) {
          expect(choose(strategy, entries, { shut: ["a"] })?.entry.backend.name).toBe("b");
        }
        expect(choose(strategy, entries, { shut: ["a", "b"] })).toBeUndefined();
      });

      test("the preferred one comes before all others while it may be asked, and moves no turn", () => {
        const entries = [entryOf("a"), entryOf("b"), entryOf("standby", { weight: 0 })];
        const strategy = strategyOf(name);
        for (const prefer of ["a", "b", "standby"]) {
          const chosen = choose(strategy, entries, { prefer });
          expect(chosen?.entry.backend.name).toBe(prefer);
          expect(chosen?.scoreMeans).toBeUndefined();
        }
        expect(choose(strategy, entries, { prefer: "a", tried: ["a"] })?.entry.backend.name).toBe("b");
        expect(choose(strategy, entries, { prefer: "a", open: ["a"] })?.entry.backend.name).toBe("b");
        expect(choose(strategy, entries, { prefer: "gone", open: ["a"] })?.entry.backend.name).toBe("b");
      });

      test("without candidates there is none", () => {
        expect(select([])).toBeUndefined();
        expect(select([], ["a"])).toBeUndefined();
      });

      test("property: everyone is tried once before anyone is tried again", () => {
        fc.assert(
          fc.property(fc.array(fc.constantFrom(0, 1, 5), { minLength: 1, maxLength: 6 }), (weights) => {
            const entries = weights.map((weight, index) => entryOf(`b${index}`, { weight }));
            const strategy = strategyOf(name);
            const tried = new Set<string>();
            for (let count = 0; count < entries.length; count++) {
              const chosen = choose(strategy, entries, { tried })?.entry.backend.name as string;
              expect(tried.has(chosen)).toBe(false);
              tried.add(chosen);
            }
            expect(choose(strategy, entries, { tried })).toBeDefined();
          }),
          { numRuns: 30 },
        );
      });
    });
  }
});

describe("what is told of a decision", () => {
  const told = (strategy: StrategyName, entries: readonly BackendEntry[], ask: Ask = {}) =>
    Object.fromEntries(
      (choose(strategyOf(strategy), entries, ask)?.told ?? []).map(({ backend, score, excluded }) => [
        backend,
        excluded ?? score,
      ]),
    );

  test("why each of the others was left out", () => {
    const entries = [
      entryOf("a"),
      entryOf("open"),
      entryOf("full"),
      entryOf("avoided"),
      entryOf("tried"),
      entryOf("standby", { weight: 0 }),
      entryOf("claude", { type: "anthropic" }),
    ];
    const ask: Ask = {
      operation: "embeddings",
      open: ["open"],
      full: ["full"],
      avoid: ["avoided"],
      tried: ["tried"],
    };
    for (const strategy of STRATEGY_NAMES) {
      expect(told(strategy, entries, ask)).toEqual({
        a: expect.any(Number),
        open: "circuit_open",
        full: "rate_limited",
        avoided: "avoided",
        tried: "tried",
        standby: "standby",
        claude: "no_operation",
      });
    }
  });

  test("a second round scores those that were tried", () => {
    const entries = [entryOf("a"), entryOf("standby", { weight: 0 })];
    expect(told("RoundRobin", entries, { tried: ["a", "standby"] })).toEqual({ a: 0, standby: "tried" });
  });

  test("RoundRobin: turns to wait", () => {
    const entries = [entryOf("a"), entryOf("b"), entryOf("c")];
    const scores = Object.values(told("RoundRobin", entries)).sort();
    expect(scores).toEqual([0, 1, 2]);
  });

  test("WeightedRoundRobin: turns that are owed, in all one", () => {
    expect(told("WeightedRoundRobin", [entryOf("a", { weight: 3 }), entryOf("b")])).toEqual({ a: 0.75, b: 0.25 });
  });

  test("Random: the chance", () => {
    expect(told("Random", [entryOf("a", { weight: 3 }), entryOf("b")])).toEqual({ a: 0.5, b: 0.5 });
  });

  test("LeastLatency: milliseconds, with what is open", () => {
    const entries = [entryOf("a"), entryOf("b")];
    Object.assign(entries[0]!.counters, { latencyMs: 40, expectedMs: 40, inFlight: 1 });
    Object.assign(entries[1]!.counters, { latencyMs: 100, expectedMs: 100 });
    expect(told("LeastLatency", entries)).toEqual({ a: 80, b: 100 });
  });

  test("ConsistentHash: the session's lots, and who has more than its share", () => {
    const entries = [entryOf("a"), entryOf("b")];
    const lots = told("ConsistentHash", entries);
    const [first, second] = lots.a! > lots.b! ? entries : [...entries].reverse();
    expect(choose(strategyOf("ConsistentHash"), entries)?.entry).toBe(first!);
    first!.counters.inFlight = 50;
    expect(choose(strategyOf("ConsistentHash"), entries)?.entry).toBe(second!);
    expect(told("ConsistentHash", entries)[first!.backend.name]).toBe("over_share");
  });

  test("property: the scores lead to the choice", () => {
    const isLowestBest: Partial<Record<StrategyName, boolean>> = { RoundRobin: true, LeastLatency: true };
    fc.assert(
      fc.property(
        fc.constantFrom(...STRATEGY_NAMES.filter((name) => name !== "Random")),
        fc.array(fc.record({ weight: fc.nat({ max: 4 }), latencyMs: fc.nat(), isOpen: fc.boolean() }), {
          maxLength: 6,
        }),
        (name, backends) => {
          const entries = backends.map(({ weight }, index) => entryOf(`b${index}`, { weight }));
          entries.forEach((entry, index) => {
            entry.counters.expectedMs = backends[index]!.latencyMs;
          });
          const open = entries.filter((_, index) => backends[index]!.isOpen).map(({ backend }) => backend.name);
          const strategy = strategyOf(name);
          for (let count = 0; count < 5; count++) {
            const chosen = choose(strategy, entries, { open });
            const scored = (chosen?.told ?? []).filter(({ excluded }) => excluded === undefined);
            const scores = scored.map(({ score }) => score as number);
            const best = isLowestBest[name] ? Math.min(...scores) : Math.max(...scores);
            const own = scored.find(({ backend }) => backend === chosen?.entry.backend.name)?.score;
            if (scored.length > 0) expect(own).toBe(best);
          }
        },
      ),
      { numRuns: 100 },
    );
  });

  test("of many backends those at the beginning and the chosen one are told; of one, nothing", () => {
    const entries = Array.from({ length: 60 }, (_, index) => entryOf(`b${index}`));
    const open = entries.slice(0, 50).map(({ backend }) => backend.name);
    const chosen = choose(strategyOf("RoundRobin"), entries, { open });
    expect(chosen?.told).toHaveLength(32);
    expect(chosen?.told?.at(-1)).toMatchObject({ backend: chosen?.entry.backend.name, score: expect.any(Number) });
    expect(choose(strategyOf("RoundRobin"), entries.slice(0, 1))?.told).toBeUndefined();
  });
});
