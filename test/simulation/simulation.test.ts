// The resilience rules under thousands of requests and random faults, in virtual time and without sockets.
// Run: sh bin/bun test test/simulation (SIGNALBOX_SIMULATION_SEED=7 replays one seed; SIGNALBOX_SIMULATION_SECONDS=600 goes on longer)

import { describe, expect, test } from "bun:test";
import type { BackendEntry } from "../../src/backends/board.ts";
import { PATTERNS, type ScenarioWishes, scenarioOf } from "./scenario.ts";
import { type Sabotage, type Summary, simulate } from "./simulation.ts";

/** Seeds that are worth keeping; one that ever failed belongs here. */
const KEPT_SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];
const DERIVED_SEEDS = 24;
const FIRST_DERIVED_SEED = 1_000;

const { SIGNALBOX_SIMULATION_SEED: oneSeed, SIGNALBOX_SIMULATION_SECONDS: seconds } = process.env;
const LONG_MS = 24 * 3_600_000;

function report({ seed, violations, events }: Summary): string {
  return [
    `seed ${seed}: ${violations.slice(0, 5).join("\n  ")}`,
    "the last events:",
    ...events.map((event) => `  ${event}`),
    `replay: SIGNALBOX_SIMULATION_SEED=${seed} sh bin/bun test test/simulation`,
  ].join("\n");
}

const COUNTED = ["requests", "attempts", "retries", "fallbacks", "switches", "refused", "answered", "failed"] as const;

/** Runs the seeds and returns what was counted over all of them; throws at the first violation. */
async function runAll(seeds: Iterable<number>, wishes: ScenarioWishes = {}): Promise<string> {
  const total = { seeds: 0, left: 0, judged: 0, virtualMs: 0, simulatedEvents: 0 };
  const counted = {
    requests: 0,
    attempts: 0,
    retries: 0,
    fallbacks: 0,
    switches: 0,
    refused: 0,
    answered: 0,
    failed: 0,
  };
  for (const seed of seeds) {
    const summary = await simulate(scenarioOf(seed, wishes));
    if (summary.violations.length > 0) throw new Error(report(summary));
    total.seeds++;
    for (const key of COUNTED) counted[key] += summary[key];
    for (const key of ["left", "judged", "virtualMs", "simulatedEvents"] as const) total[key] += summary[key];
  }
  const { virtualMs, ...numbers } = { ...counted, ...total };
  const words = Object.entries(numbers).map(([name, value]) => `${value} ${name}`);
  return `${words.join(", ")}, ${Math.round(virtualMs / 1000)} s of virtual time`;
}

function* derivedSeeds(): Generator<number> {
  for (let seed = FIRST_DERIVED_SEED; seed < FIRST_DERIVED_SEED + DERIVED_SEEDS; seed++) yield seed;
}

function* seedsFor(durationMs: number): Generator<number> {
  const endMs = performance.now() + durationMs;
  for (let seed = FIRST_DERIVED_SEED + DERIVED_SEEDS; performance.now() < endMs; seed++) yield seed;
}

if (oneSeed !== undefined) {
  test(
    `seed ${oneSeed}`,
    async () => {
      const summary = await simulate(scenarioOf(Number(oneSeed)));
      console.log(report(summary));
      expect(summary.violations).toEqual([]);
    },
    LONG_MS,
  );
} else {
  describe("simulation", () => {
    test("the invariants hold for every seed", async () => {
      console.log(`simulation: ${await runAll([...KEPT_SEEDS, ...derivedSeeds()])}`);
    }, 60_000);

    for (const pattern of PATTERNS) {
      test(`${pattern}: few backends, with and without chains`, async () => {
        await runAll([1, 2, 3], { pattern, backends: 5, requests: 300, chains: true });
        await runAll([4, 5, 6], { pattern, backends: 5, requests: 300, chains: false, limits: true });
      }, 60_000);
    }

    test("a thousand backends", async () => {
      await runAll([11], { backends: 1000, requests: 100, pattern: "mass-restart" });
    }, 60_000);

    test("while one backend lives, no client sees a failure, except of streams that nobody may take over", async () => {
      for (const seed of [21, 22, 23]) {
        const wishes = { pattern: "last-survivor", backends: 8, limits: false, chains: true, requests: 300 } as const;
        const scenario = scenarioOf(seed, wishes);
        const conditions = scenario.conditions.filter((condition) => condition !== "erring");
        const summary = await simulate({ ...scenario, conditions, mistaken: 0 });
        if (summary.violations.length > 0) throw new Error(report(summary));
        expect(summary.retries).toBeGreaterThan(0);
        expect(summary.failed - summary.lost).toBe(0);
      }
    }, 60_000);

    test("a seed replays exactly", async () => {
      for (const seed of [1, 31, 32]) {
        const [first, second] = [await simulate(scenarioOf(seed)), await simulate(scenarioOf(seed))];
        expect(second).toEqual(first);
      }
      const digests = await Promise.all([41, 42].map(async (seed) => (await simulate(scenarioOf(seed))).digest));
      expect(digests[0]).not.toBe(digests[1]);
    }, 60_000);

    if (seconds !== undefined) {
      test(
        "as many seeds as fit",
        async () => {
          console.log(`simulation: ${await runAll(seedsFor(Number(seconds) * 1000))}`);
        },
        LONG_MS,
      );
    }
  });

  describe("a broken part is noticed", () => {
    const busy: ScenarioWishes = { pattern: "mixed", backends: 6, requests: 300 };
    const cases: [string, ScenarioWishes, Sabotage, RegExp][] = [
      [
        "a board that remembers a backend that was removed",
        { ...busy, removals: true },
        {
          board() {
            const seen = new Map<string, BackendEntry>();
            const known = (entry: BackendEntry): BackendEntry => {
              const first = seen.get(entry.backend.name) ?? entry;
              seen.set(entry.backend.name, first);
              return first;
            };
            return (real) => ({ ...real, candidates: (model) => real.candidates(model).map(known) });
          },
        },
        /which was removed/,
      ],
      [
        "a removal that cuts what is in flight",
        { ...busy, removals: true },
        {
          sender: (real) => ({
            async send(entry, request, settings) {
              const { running } = entry.counters;
              Object.defineProperty(entry.counters, "onIdle", {
                configurable: true,
                set() {
                  for (const each of running) each.cut();
                },
                get: () => undefined,
              });
              return await real.send(entry, request, settings);
            },
          }),
        },
        /which was fine/,
      ],
      [
        "a strategy that ignores who may be asked",
        { ...busy, breaker: false, limits: false },
        {
          strategy: (real) => ({
            ...real,
            score({ places, scores }) {
              (places as number[]).splice(0, Number.POSITIVE_INFINITY, 0);
              scores[0] = 1;
            },
          }),
        },
        /while .* had room/,
      ],
      [
        "a strategy that now and then finds nobody",
        { ...busy, limits: false },
        {
          strategy(real) {
            let count = 0;
            return {
              ...real,
              score(ranking, query) {
                if (++count % 50 < 8) (ranking.places as number[]).length = 0;
                else real.score(ranking, query);
              },
            };
          },
        },
        /had room|would have answered/,
      ],
      [
        "a limiter that always admits",
        { ...busy, limits: true },
        { limiter: (real) => ({ ...real, size: 0, take: () => undefined, takeBackend: () => true }) },
        /more than its limit and burst/,
      ],
      [
        "a permit of an open circuit",
        { ...busy, pattern: "last-survivor", breaker: true },
        {
          circuits: (real) => ({
            ...real,
            allows: () => true,
            acquire: (name) => real.acquire(name) ?? { isProbe: true, settle: () => {} },
          }),
        },
        /while its circuit is open|requests try/,
      ],
      [
        "a sender that forgets to count down",
        busy,
        {
          sender(real) {
            let count = 0;
            return {
              async send(entry, request, settings) {
                if (++count === 20) entry.counters.inFlight++;
                return await real.send(entry, request, settings);
              },
            };
          },
        },
        /in flight/,
      ],
      [
        "permits that are not settled",
        { ...busy, breaker: true },
        {
          forwarder: (real) => ({
            hasOther: real.hasOther,
            hasPool: real.hasPool,
            async forward(context, request) {
              const result = await real.forward(context, request);
              if (result.kind === "stream") result.live.finished = () => {};
              return result;
            },
          }),
        },
        /never settled|places were not given back/,
      ],
      [
        "a forwarder that gives up at once",
        { ...busy, pattern: "last-survivor" },
        {
          sender: (real) => ({
            async send(entry, request, settings) {
              const outcome = await real.send(entry, request, settings);
              if (outcome.ok) return outcome;
              return { ok: false, failure: { kind: "told-in-stream" } };
            },
          }),
        },
        /would have answered/,
      ],
      [
        "chains that nobody walks",
        { ...busy, pattern: "last-survivor", chains: true, breaker: true },
        {
          chains: (real) => ({
            ...real,
            forward: (context, request) =>
              real.forward(
                {
                  ...context,
                  settings: { ...context.settings, fallback: { ...context.settings.fallback, enabled: false } },
                },
                request,
              ),
          }),
        },
        /would have answered/,
      ],
      [
        "a wait that ignores that the client has left",
        { ...busy, pattern: "overload-storm", backends: 2 },
        {
          delay: (time) => (durationMs) =>
            new Promise((resolve) => {
              time.schedule(durationMs, resolve);
            }),
        },
        /goes on although its client has left/,
      ],
      [
        "a wait that never ends",
        { ...busy, pattern: "overload-storm", backends: 2 },
        { delay: () => () => new Promise(() => {}) },
        /never ended|goes on although/,
      ],
    ];
    for (const [name, wishes, sabotage, expected] of cases) {
      test(name, async () => {
        for (let seed = 100; ; seed++) {
          if (seed === 120) throw new Error("nobody noticed");
          const { violations } = await simulate(scenarioOf(seed, wishes), sabotage);
          if (violations.length === 0) continue;
          expect(violations.join("\n")).toMatch(expected);
          break;
        }
      }, 60_000);
    }
  });
}
