// Which backends take requests while the list changes, who drains, until when, and what is cut.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { manualDrains } from "../../test/support/manual-drains.ts";
import { type ConfigDocument, documentSchema } from "../config/sections/registry.ts";
import { type Backend, type BackendCounters, beginRunning, endRunning, toBackend } from "./backend.ts";
import { DRAIN_LIMIT_MS } from "./drains.ts";
import { BACKEND_KINDS } from "./kinds.ts";
import { createRegistry } from "./registry.ts";

type BackendInput = NonNullable<ConfigDocument["backends"]>[number];

function backendsOf(inputs: BackendInput[]): Backend[] {
  const backends = inputs.map((each) => ({ url: "http://h", ...each }));
  return documentSchema.parse({ backends }).backends.map(toBackend);
}

/** A registry without health checks in which every backend serves the model m. */
function bench(inputs: BackendInput[] = []) {
  const { drains, time, finished } = manualDrains();
  const registry = createRegistry([], { checksEnabled: false, drains });
  function replace(next: BackendInput[]) {
    const changes = registry.replace(backendsOf(next), false);
    for (const name of changes.added) registry.setModels(name, ["m"]);
    return changes;
  }
  replace(inputs);
  const names = () => registry.current.candidates("m").map(({ backend }) => backend.name);
  const countersOf = (name: string) =>
    registry.current.entries.find(({ backend }) => backend.name === name)!.counters as BackendCounters;
  const draining = () => drains.list().map(({ backend }) => backend.name);
  return { registry, drains, time, finished, replace, names, countersOf, draining };
}

/** A request in flight, as an exchange counts it. */
function begin(counters: BackendCounters) {
  const request = { isCut: false, isOver: false, place: 0, cut, end };
  function cut(): void {
    request.isCut = true;
  }
  function end(): void {
    request.isOver = true;
    endRunning(counters, request);
  }
  beginRunning(counters, request);
  return request;
}

describe("a removed backend", () => {
  test("gets no more requests, drains while it has some, and is gone with the last", () => {
    const b = bench([{ name: "a" }, { name: "b" }]);
    const requests = [begin(b.countersOf("a")), begin(b.countersOf("a"))];
    expect(b.replace([{ name: "b" }])).toEqual({ removed: ["a"], added: [], changed: [] });
    expect([b.names(), b.draining()]).toEqual([["b"], ["a"]]);
    expect(b.registry.current.serving("m").length).toBe(1);
    expect(() => b.registry.backend("a")).toThrow();
    requests[0]!.end();
    expect([b.draining(), b.finished]).toEqual([["a"], []]);
    requests[1]!.end();
    expect([b.draining(), b.finished]).toEqual([[], ["a 0"]]);
    expect(b.time.deadlines.size).toBe(0);
  });

  test("without requests is gone at once", () => {
    const b = bench([{ name: "a" }]);
    b.replace([]);
    expect([b.draining(), b.finished, b.time.deadlines.size]).toEqual([[], [], 0]);
  });

  test("has five minutes; what is not over then is cut, and it is gone", () => {
    const b = bench([{ name: "a" }]);
    const [early, late] = [begin(b.countersOf("a")), begin(b.countersOf("a"))];
    b.replace([]);
    early.end();
    b.time.moveBy(DRAIN_LIMIT_MS - 1);
    expect(b.drains.list()).toMatchObject([{ remainingMs: 1, counters: { inFlight: 1 } }]);
    expect(late.isCut).toBe(false);
    b.time.moveBy(1);
    expect([early.isCut, late.isCut, b.draining(), b.finished]).toEqual([false, true, [], ["a 1"]]);
    late.end();
    expect(b.finished).toEqual(["a 1"]);
  });

  test("may come back under its name while the old one drains, and be removed again", () => {
    const b = bench([{ name: "a" }]);
    const first = begin(b.countersOf("a"));
    b.replace([]);
    b.time.moveBy(1_000);
    expect(b.replace([{ name: "a" }])).toEqual({ removed: [], added: ["a"], changed: [] });
    expect([b.names(), b.draining(), b.countersOf("a").inFlight]).toEqual([["a"], ["a"], 0]);
    const second = begin(b.countersOf("a"));
    b.replace([]);
    expect(b.drains.list().map(({ remainingMs }) => remainingMs)).toEqual([DRAIN_LIMIT_MS - 1_000, DRAIN_LIMIT_MS]);
    first.end();
    expect(b.drains.list().map(({ remainingMs }) => remainingMs)).toEqual([DRAIN_LIMIT_MS]);
    second.end();
    expect(b.draining()).toEqual([]);
  });
});

describe("a disabled backend", () => {
  test("stays in the list without being a candidate, and drains", () => {
    const b = bench([{ name: "a" }, { name: "b" }]);
    const request = begin(b.countersOf("a"));
    b.replace([{ name: "a", enabled: false }, { name: "b" }]);
    expect([b.names(), b.draining()]).toEqual([["b"], ["a"]]);
    expect(b.registry.current.entries.map(({ backend }) => backend.enabled)).toEqual([false, true]);
    expect(b.countersOf("a").inFlight).toBe(1);
    request.end();
    expect([b.draining(), b.finished]).toEqual([[], ["a 0"]]);
  });

  test("that is enabled again need not finish", () => {
    const b = bench([{ name: "a" }]);
    const request = begin(b.countersOf("a"));
    b.replace([{ name: "a", enabled: false }]);
    b.replace([{ name: "a" }]);
    b.time.moveBy(2 * DRAIN_LIMIT_MS);
    expect([b.names(), b.draining(), request.isCut]).toEqual([["a"], [], false]);
    request.end();
    expect(b.finished).toEqual([]);
  });

  test("that is then removed gets no more time", () => {
    const b = bench([{ name: "a" }]);
    begin(b.countersOf("a"));
    b.replace([{ name: "a", enabled: false }]);
    b.time.moveBy(60_000);
    b.replace([]);
    expect(b.drains.list().map(({ remainingMs }) => remainingMs)).toEqual([DRAIN_LIMIT_MS - 60_000]);
  });
});

describe("a changed backend", () => {
  test("keeps health, models, recognised kind and counters while it is the same server", () => {
    const b = bench([{ name: "a" }]);
    b.registry.setHealth("a", "ready");
    b.registry.setKind("a", BACKEND_KINDS.vllm);
    const counters = b.countersOf("a");
    begin(counters);
    const { changed } = b.replace([{ name: "a", api_key: "sekret", weight: 7 }]);
    expect(changed.map(({ before, after }) => [before.weight, after.weight])).toEqual([[1, 7]]);
    const entry = b.registry.current.candidates("m")[0]!;
    expect(entry).toMatchObject({ health: "ready", backend: { apiKey: "sekret", kind: { name: "vllm" } } });
    expect(entry.counters).toBe(counters);
    expect(b.draining()).toEqual([]);
  });

  test.each([{ url: "http://other" }, { url: "unix:/a.sock" }, { type: "vllm" }])(
    "is another one with %j: nothing is known of it, and the old one drains",
    (facts) => {
      const b = bench([{ name: "a" }]);
      b.registry.setHealth("a", "ready");
      const old = b.countersOf("a");
      begin(old);
      expect(b.replace([{ name: "a", ...facts }])).toEqual({ removed: ["a"], added: ["a"], changed: [] });
      expect(b.registry.current.entries[0]).toMatchObject({ health: "unknown", counters: { inFlight: 0 } });
      expect(b.drains.list()[0]?.counters).toBe(old);
    },
  );

  test("an address that is only spelled differently is the same server", () => {
    const b = bench([{ name: "a", url: "http://h/v1/" }]);
    expect(b.replace([{ name: "a", url: "http://h" }])).toMatchObject({ removed: [], added: [] });
  });
});

describe("a new list", () => {
  test("that changes nothing publishes nothing", () => {
    const b = bench([{ name: "a" }, { name: "b" }]);
    const board = b.registry.current;
    b.replace([{ name: "a" }, { name: "b" }]);
    expect(b.registry.current).toBe(board);
  });

  test("has its own order", () => {
    const b = bench([{ name: "a" }, { name: "b" }]);
    b.replace([{ name: "b" }, { name: "a" }]);
    expect(b.names()).toEqual(["b", "a"]);
  });

  test("may switch the health checks", () => {
    const b = bench([{ name: "a" }]);
    b.registry.replace(backendsOf([{ name: "a" }]), true);
    expect(b.names()).toEqual([]);
    b.registry.replace(backendsOf([{ name: "a" }]), false);
    expect(b.names()).toEqual(["a"]);
  });
});

describe("property: as a simple model says", () => {
  /** One life of a name at one server. */
  interface Life {
    name: string;
    server: number;
    isEnabled: boolean;
    requests: ReturnType<typeof begin>[];
    /** Undefined while it takes requests, or has none to finish. */
    drainedSinceMs: number | undefined;
  }

  const NAMES = ["a", "b", "c"] as const;
  const list = fc.uniqueArray(
    fc.record({ name: fc.constantFrom(...NAMES), server: fc.nat({ max: 1 }), enabled: fc.boolean() }),
    { selector: ({ name }) => name, maxLength: 3 },
  );
  const step = fc.oneof(
    { weight: 3, arbitrary: list.map((backends) => ({ kind: "replace" as const, backends })) },
    { weight: 4, arbitrary: fc.nat().map((which) => ({ kind: "begin" as const, which })) },
    { weight: 3, arbitrary: fc.nat().map((which) => ({ kind: "end" as const, which })) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: DRAIN_LIMIT_MS }).map((ms) => ({ kind: "wait" as const, ms })) },
  );

  test("who may be chosen, who drains, and what is cut", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const b = bench();
        let nowMs = 0;
        let current: Life[] = [];
        let draining: Life[] = [];
        const ended = (life: Life) => life.requests.every(({ isOver }) => isOver);
        const startDraining = (life: Life) => {
          if (draining.includes(life) || ended(life)) return;
          life.drainedSinceMs = nowMs;
          draining.push(life);
        };
        for (const each of steps) {
          if (each.kind === "replace") {
            const next = each.backends.map(({ name, server, enabled }): Life => {
              const known = current.find((life) => life.name === name && life.server === server);
              if (known === undefined)
                return { name, server, isEnabled: enabled, requests: [], drainedSinceMs: undefined };
              known.isEnabled = enabled;
              if (enabled) draining = draining.filter((life) => life !== known);
              else startDraining(known);
              return known;
            });
            for (const life of current) if (!next.includes(life)) startDraining(life);
            current = next;
            b.replace(each.backends.map(({ name, server, enabled }) => ({ name, enabled, url: `http://h${server}` })));
          } else if (each.kind === "begin") {
            const enabled = current.filter(({ isEnabled }) => isEnabled);
            const life = enabled[each.which % enabled.length];
            life?.requests.push(begin(b.countersOf(life.name)));
          } else if (each.kind === "end") {
            const open = [...new Set([...current, ...draining])].flatMap(({ requests }) =>
              requests.filter(({ isOver }) => !isOver),
            );
            open[each.which % open.length]?.end();
          } else {
            nowMs += each.ms;
            b.time.moveBy(each.ms);
            draining = draining.filter((life) => {
              const isLate = nowMs - (life.drainedSinceMs as number) >= DRAIN_LIMIT_MS;
              const open = life.requests.filter(({ isOver }) => !isOver);
              expect(open.every(({ isCut }) => isCut === isLate)).toBe(true);
              if (isLate) for (const request of open) request.end();
              return !isLate;
            });
          }
          draining = draining.filter((life) => !ended(life));
          const served = current.filter(({ isEnabled }) => isEnabled);
          expect(b.names()).toEqual(served.map(({ name }) => name));
          expect(b.registry.current.entries.map(({ backend }) => backend.name)).toEqual(
            current.map(({ name }) => name),
          );
          expect(b.draining().sort()).toEqual(draining.map(({ name }) => name).sort());
          expect(b.time.deadlines.size).toBe(draining.length);
          for (const life of current) {
            const open = life.requests.filter(({ isOver }) => !isOver);
            expect(b.countersOf(life.name).inFlight).toBe(open.length);
            if (life.isEnabled) expect(open.some(({ isCut }) => isCut)).toBe(false);
          }
        }
      }),
      { numRuns: 500 },
    );
  });
});
